"""Stall coverage: regions for which both sides report stalled calls. The callers' wait is compared
there, and the duration of steady calls elsewhere.

An agent that does not report stalled calls counts calls that ran code without a graph as compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from dashboard.regressions.judge.inputs import InstanceMinute

Row = TypeVar("Row", bound=InstanceMinute)


class StallCoverage:
    """Regions by whether the agents of each arm report stalled calls. An older agent counts stalled
    calls as warm-up."""

    __slots__ = ("_bare", "_reporting", "_silent")

    def __init__(self) -> None:
        self._reporting: set[str] = set()
        self._silent: set[str] = set()
        self._bare: set[str] = set()

    def record_rows(self, rows: Iterable[InstanceMinute]) -> None:
        """Adds rows of any minutes, in any order."""
        for row in rows:
            if row.calls > 0:
                (self._silent if row.stalled is None else self._reporting).add(row.region)
            if row.eager_by.get(NO_GRAPH):
                self._bare.add(row.region)

    @property
    def silent(self) -> frozenset[str]:
        """Regions that some instance calls without reporting stalled calls."""
        return frozenset(self._silent)

    @property
    def differ(self) -> frozenset[str]:
        """Of those, the regions for which another instance reports stalled calls: agent versions
        differ."""
        return frozenset(self._silent & self._reporting)

    @property
    def differ_on_graphs(self) -> frozenset[str]:
        """Of those, the regions with calls that ran code without a graph, which the older agent
        counts as compiled."""
        return self.differ & self._bare


def align_rows(
    rows: Iterable[Row], silent: frozenset[str], without: Callable[[Row], Row]
) -> list[Row]:
    """The rows, with those of `silent` regions as an older agent counts them. An agent upgrade
    alone then changes nothing."""
    if not silent:
        return list(rows)
    return [
        without(row) if row.stalled is not None and row.region in silent else row for row in rows
    ]


STEADY_ONLY: dict[str, Any] = {
    "stalled": None,
    "stalled_sum": None,
    "call_seconds": None,
    "caller_p50": None,
    "caller_p99": None,
}
"""Columns of a row without its stalled calls."""
NO_GRAPH = "no_graph"


def downgrade_columns(row: InstanceMinute) -> dict[str, Any]:
    """The columns that an older agent reports differently, as the older agent reports them."""
    bare = row.eager_by.get(NO_GRAPH, 0)
    if not bare:
        return STEADY_ONLY
    causes = {cause: count for cause, count in row.eager_by.items() if cause != NO_GRAPH}
    return STEADY_ONLY | {
        "compiled": row.compiled + bare,
        "eager": row.eager - bare,
        "eager_by": causes,
    }
