"""Why calls ran eager: the words for each cause, and the counts by cause of one group of calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dashboard.fleet.fold.counters import COUNTED_EAGER_CAUSES


class CauseText(NamedTuple):
    """A cause as a heading, and as a sentence about `{it}`: a region, a frame, or "it"."""

    name: str
    sentence: str


CAUSES = {
    "limit": CauseText("Recompile limit reached", "{it} reached its recompile limit"),
    "stance": CauseText("Eager stance", "{it} runs under an eager stance"),
    "skip": CauseText("Frame skipped by torch", "torch skips the frame of {it}"),
    "disabled": CauseText("Compilation disabled", "compiling {it} is disabled"),
    "error": CauseText("Compilation failed", "{it} failed to compile"),
    "no_graph": CauseText("No graph to run", "torch found no graph to compile in {it}"),
}


def cause_name(cause: str) -> str:
    """A cause as a heading; one of a newer agent under its own name."""
    return CAUSES[cause].name if cause in CAUSES else cause.replace("_", " ").capitalize()


def cause_sentence(cause: str, it: str) -> str:
    """What a cause says of a region or frame; empty where the cause is unknown."""
    return CAUSES[cause].sentence.format(it=it) if cause in CAUSES else ""


def format_causes(counts: Mapping[str, int]) -> str:
    """`recompile limit reached 4,200, eager stance 12`, the most frequent first; empty without a
    count."""
    ordered = sorted(
        ((count, cause) for cause, count in counts.items() if count > 0),
        key=lambda pair: (-pair[0], pair[1]),
    )
    return ", ".join(f"{_lower(cause_name(cause))} {count:,}" for count, cause in ordered)


def parse_causes(stored: object) -> dict[str, int]:
    """The counts in a stored verdict; a row keeps the shape of the day it was written."""
    counts = stored.items() if isinstance(stored, Mapping) else ()
    return {
        str(cause): count
        for cause, count in counts
        if isinstance(count, int) and not isinstance(count, bool) and count > 0
    }


@dataclass(frozen=True)
class BreakdownRow:
    """One row of the breakdown; `share` is of the calls that the agents looked at, None for the
    calls that they did not."""

    name: str
    calls: int
    share: float | None
    eager: bool


@dataclass(frozen=True)
class EagerBreakdown:
    """Calls of one group by how they ran. `unknown` are calls that no agent looked at; they are in
    no share."""

    compiled: int = 0
    partial: int = 0
    unknown: int = 0
    by: Mapping[str, int] = field(default_factory=dict)

    @property
    def eager(self) -> int:
        """Calls that ran eager."""
        return sum(self.by.values())

    @property
    def known(self) -> int:
        """Calls that the agents looked at."""
        return self.compiled + self.partial + self.eager

    @property
    def share(self) -> float | None:
        """Eager calls among the known ones; None where none is known."""
        return self.eager / self.known if self.known else None

    @property
    def words(self) -> str:
        """The causes in one line; empty where nothing ran eager."""
        return format_causes(self.by)

    @property
    def lines(self) -> list[BreakdownRow]:
        """The causes by count, then partly compiled calls and unknown calls, each only where there
        are any."""
        ordered = sorted(self.by.items(), key=lambda item: (-item[1], item[0]))
        rows = [(cause_name(cause), count, True) for cause, count in ordered] + [
            ("Partly compiled", self.partial, False)
        ]
        known = [
            BreakdownRow(name, count, count / self.known, eager)
            for name, count, eager in rows
            if count
        ]
        return known + (
            [BreakdownRow("Not known", self.unknown, None, False)] if self.unknown else []
        )

    def as_dict(self) -> dict[str, object]:
        """The counts under the names of the API; every cause is there, so that zero is not
        absent."""
        return {
            "compiled": self.compiled,
            "partial": self.partial,
            "unknown": self.unknown,
            "eager_by": {cause: self.by.get(cause, 0) for cause in COUNTED_EAGER_CAUSES},
        }


def sum_breakdowns(groups: Iterable[EagerBreakdown]) -> EagerBreakdown:
    """All groups as one."""
    found = list(groups)
    by = {cause: sum(one.by.get(cause, 0) for one in found) for cause in COUNTED_EAGER_CAUSES}
    return EagerBreakdown(
        compiled=sum(one.compiled for one in found),
        partial=sum(one.partial for one in found),
        unknown=sum(one.unknown for one in found),
        by={cause: count for cause, count in by.items() if count},
    )


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]
