"""Counts per instance, minute and hour, computed independently of the dashboard from the notes of
the senders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

CORRECTED_OVER_MILLISECONDS = 2000
"""Windows of a sender with a larger clock error are shifted, as the server documentation
specifies."""
LONGEST_MILLISECONDS = 60_000
"""A longer window has no minute: it only counts in its hour."""
CALLS = ("calls", "errors", "compiled", "partial", "unknown", "sampled")
EAGER = ("limit", "stance", "skip", "disabled", "error", "no_graph")
SKETCHES = ("latency", "gpu", "warmup", "stalled")

Counts = Counter[str]


class Cell(NamedTuple):
    """One place for counts: a row of a table, `who` is an instance or a version, `what` a region or
    a compilation."""

    table: str
    who: str
    what: str
    when: int


Tally = dict[Cell, Counts]


class Arrival(NamedTuple):
    """A stored report, as recorded by the database: numbers of its windows, and the seconds by
    which its clock is behind."""

    instance: str
    first: int
    last: int
    offset: float


@dataclass
class Note:
    """The counts of one window, as noted by its sender; times are Unix milliseconds."""

    version: str
    start: int
    end: int
    regions: dict[str, Counts] = field(default_factory=dict)
    process: Counts = field(default_factory=Counter)
    compiles: dict[str, int] = field(default_factory=dict)
    """End of each compilation, by its ID."""


Notes = dict[tuple[str, int, int], Note]
"""By instance and window numbers."""


class Difference(NamedTuple):
    """A cell with different values in the tables and in the ledger."""

    cell: Cell
    ledger: Counts
    tables: Counts

    def __str__(self) -> str:
        names = sorted(
            name for name in {*self.ledger, *self.tables} if self.ledger[name] != self.tables[name]
        )
        changes = ", ".join(
            f"{name} {self.tables[name]} instead of {self.ledger[name]}" for name in names[:6]
        )
        return (
            f"{self.cell.table} of {self.cell.who}, {self.cell.what or 'process'}, "
            f"{self.cell.when}: {changes}"
        )


def tally_of(notes: Notes, arrivals: Iterable[Arrival]) -> Tally:
    """The expected tables after everything that was stored is folded."""
    tally: Tally = {}
    for arrival in arrivals:
        for cell, counts in _cells_of(arrival, _parts_joined(notes, arrival)):
            tally.setdefault(cell, Counter()).update(counts)
    return tally


def differences(ledger: Tally, tables: Tally) -> list[Difference]:
    """Every cell with different values; an absent cell is empty."""
    nothing: Counts = Counter()
    pairs = (
        (cell, +ledger.get(cell, nothing), +tables.get(cell, nothing))
        for cell in sorted({*ledger, *tables})
    )
    return [Difference(cell, mine, theirs) for cell, mine, theirs in pairs if mine != theirs]


def sketch_counts(name: str, sketch: Mapping[str, Any] | None) -> Counts:
    """Number of values in a sketch in wire format, in total and by bin."""
    counts: Counts = Counter()
    if sketch:
        counts[f"{name} zero"] = sketch.get("zero", 0)
        counts.update(
            {
                f"{name} bin {sketch['offset'] + place}": filled
                for place, filled in enumerate(sketch["bins"])
                if filled
            }
        )
        counts[name] = sum(counts.values())
    return counts


def _parts_joined(notes: Notes, arrival: Arrival) -> Note:
    """The note of a stored report: of one window, or of several windows that the sender merged."""
    if (arrival.instance, arrival.first, arrival.last) in notes:
        return notes[arrival.instance, arrival.first, arrival.last]
    parts = [
        notes[arrival.instance, number, number] for number in range(arrival.first, arrival.last + 1)
    ]
    joined = Note(parts[0].version, parts[0].start, parts[-1].end)
    for part in parts:
        joined.process.update(part.process)
        joined.compiles |= part.compiles
        for place, counts in part.regions.items():
            joined.regions.setdefault(place, Counter()).update(counts)
    return joined


def _cells_of(arrival: Arrival, note: Note) -> Iterator[tuple[Cell, Counts]]:
    shift = (
        round(arrival.offset * 1000)
        if abs(arrival.offset) * 1000 > CORRECTED_OVER_MILLISECONDS
        else 0
    )
    minute = -(-(note.end + shift) // 60_000) - 1  # the minute of the moment before the end
    long, instance, version = (
        note.end - note.start > LONGEST_MILLISECONDS,
        arrival.instance,
        note.version,
    )
    for place, counts in note.regions.items():
        if not long:
            yield Cell("region_minute", instance, place, minute), counts
            yield Cell("version_minute", version, place, minute), counts
        yield Cell("version_hour", version, place, minute // 60), counts
    process = note.process + Counter(windows=arrival.last - arrival.first + 1)
    if not long:
        yield Cell("process_minute", instance, "", minute), process
        yield Cell("version_process_minute", version, "", minute), process
    yield Cell("version_process_hour", version, "", minute // 60), process
    for name, at in note.compiles.items():
        yield Cell("compile_event", instance, name, (at + shift) // 60_000), Counter(events=1)
