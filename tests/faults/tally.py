"""An account of counts per instance, minute and hour that is independent of the dashboard: plain
numbers of what senders wrote down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

CORRECTED_OVER_MILLISECONDS = 2000
"""A sender whose clock is further away has its windows moved, as the documentation of the server
says."""
LONGEST_MILLISECONDS = 60_000
"""A longer window has no minute: it is counted in its hour alone."""
CALLS = ("calls", "errors", "compiled", "partial", "unknown", "sampled")
EAGER = ("limit", "stance", "skip", "disabled", "error", "no_graph")
SKETCHES = ("latency", "gpu", "warmup", "stalled")

Counts = Counter[str]


class Cell(NamedTuple):
    """One place in which something is counted: a row of a table, `who` an instance or a version,
    `what` a region or a compilation."""

    table: str
    who: str
    what: str
    when: int


Tally = dict[Cell, Counts]


class Arrival(NamedTuple):
    """A report that was stored, as the database itself noted it: numbers of its windows, and by how
    many seconds its clock is behind."""

    instance: str
    first: int
    last: int
    offset: float


@dataclass
class Note:
    """What one window holds, as its sender wrote it down; times are Unix milliseconds."""

    version: str
    start: int
    end: int
    regions: dict[str, Counts] = field(default_factory=dict)
    process: Counts = field(default_factory=Counter)
    compiles: dict[str, int] = field(default_factory=dict)
    """When each compilation was over, by its id."""


Notes = dict[tuple[str, int, int], Note]
"""By instance and the numbers of the window."""


class Difference(NamedTuple):
    """A cell in which the tables hold something else than the ledger."""

    cell: Cell
    ledger: Counts
    tables: Counts

    def __str__(self) -> str:
        names = sorted(
            name for name in {*self.ledger, *self.tables} if self.ledger[name] != self.tables[name]
        )
        told = ", ".join(
            f"{name} {self.tables[name]} instead of {self.ledger[name]}" for name in names[:6]
        )
        return (
            f"{self.cell.table} of {self.cell.who}, {self.cell.what or 'process'}, "
            f"{self.cell.when}: {told}"
        )


def tally_of(notes: Notes, arrivals: Iterable[Arrival]) -> Tally:
    """What the tables have to hold once everything that was stored is folded."""
    tally: Tally = {}
    for arrival in arrivals:
        for cell, counts in _cells_of(arrival, _parts_joined(notes, arrival)):
            tally.setdefault(cell, Counter()).update(counts)
    return tally


def differences(ledger: Tally, tables: Tally) -> list[Difference]:
    """Every cell in which they are not equal; a cell that is absent holds nothing."""
    nothing: Counts = Counter()
    pairs = (
        (cell, +ledger.get(cell, nothing), +tables.get(cell, nothing))
        for cell in sorted({*ledger, *tables})
    )
    return [Difference(cell, mine, theirs) for cell, mine, theirs in pairs if mine != theirs]


def sketch_counts(name: str, sketch: Mapping[str, Any] | None) -> Counts:
    """How many values a sketch on the wire holds, whole and by bin."""
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
    """The note of what arrived: of one window, or of several that the sender merged."""
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
