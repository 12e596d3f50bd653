"""Eager causes: the labels of each cause, and the counts per cause of a group of calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dashboard.fleet.fold.counters import COUNTED_EAGER_CAUSES


class CauseText(NamedTuple):
    """Label of a cause, and a sentence about `{it}`: a region, a frame, or "it"."""

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
    """Return the label of a cause; a cause of a newer agent appears under its own name."""
    return CAUSES[cause].name if cause in CAUSES else cause.replace("_", " ").capitalize()


def cause_sentence(cause: str, it: str) -> str:
    """Return the sentence about a region or frame; empty for an unknown cause."""
    return CAUSES[cause].sentence.format(it=it) if cause in CAUSES else ""


def format_causes(counts: Mapping[str, int]) -> str:
    """Format counts as `recompile limit reached 4,200, eager stance 12`, the largest first.

    Empty without a count.
    """
    ordered = sorted(
        ((count, cause) for cause, count in counts.items() if count > 0),
        key=lambda pair: (-pair[0], pair[1]),
    )
    return ", ".join(f"{_lower(cause_name(cause))} {count:,}" for count, cause in ordered)


def parse_causes(stored: object) -> dict[str, int]:
    """Return the counts of a stored verdict; older rows may have another shape."""
    counts = stored.items() if isinstance(stored, Mapping) else ()
    return {
        str(cause): count
        for cause, count in counts
        if isinstance(count, int) and not isinstance(count, bool) and count > 0
    }


@dataclass(frozen=True)
class BreakdownRow:
    """One row of the breakdown. `share` is the share of sampled calls; None for unsampled calls."""

    name: str
    calls: int
    share: float | None
    eager: bool


@dataclass(frozen=True)
class EagerBreakdown:
    """Calls of one group by execution mode. `unknown` counts unsampled calls, which no share
    includes."""

    compiled: int = 0
    partial: int = 0
    unknown: int = 0
    by: Mapping[str, int] = field(default_factory=dict)

    @property
    def eager(self) -> int:
        """Number of eager calls."""
        return sum(self.by.values())

    @property
    def known(self) -> int:
        """Number of sampled calls."""
        return self.compiled + self.partial + self.eager

    @property
    def share(self) -> float | None:
        """Share of eager calls among sampled calls; None without sampled calls."""
        return self.eager / self.known if self.known else None

    @property
    def words(self) -> str:
        """The causes in one line; empty without eager calls."""
        return format_causes(self.by)

    @property
    def lines(self) -> list[BreakdownRow]:
        """The causes by count, then partly compiled and unknown calls; rows without calls are
        absent."""
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
        """Return the counts under the API's names, with zero for causes without calls."""
        return {
            "compiled": self.compiled,
            "partial": self.partial,
            "unknown": self.unknown,
            "eager_by": {cause: self.by.get(cause, 0) for cause in COUNTED_EAGER_CAUSES},
        }


def sum_breakdowns(groups: Iterable[EagerBreakdown]) -> EagerBreakdown:
    """Return the sum of all groups."""
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
