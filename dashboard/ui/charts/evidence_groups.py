"""Groups of the evidence table: user-facing metrics, causes, and cost, each row with its plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.ui.charts.evidence_table import EvidenceRow
from dashboard.ui.charts.interval_plot import IntervalPlot, build_interval_plot

USER_FACING = ("p50", "p95", "p99", "throughput", "errors")
CAUSES = ("eager", "stalled", "stalled_time", "recompiles", "cache", "leak")
TITLES = ("User-facing", "Cause", "Cost")


@dataclass(frozen=True)
class PlottedRow:
    """A row of the table and its plot."""

    row: EvidenceRow
    plot: IntervalPlot


@dataclass(frozen=True)
class EvidenceGroup:
    """A titled group of rows."""

    title: str
    rows: list[PlottedRow]


def group_evidence(rows: Sequence[EvidenceRow]) -> list[EvidenceGroup]:
    """The groups that have rows; rows keep their order."""
    found: dict[str, list[PlottedRow]] = {title: [] for title in TITLES}
    for row in rows:
        found[_title(row)].append(PlottedRow(row, build_interval_plot(row)))
    return [EvidenceGroup(title, plotted) for title, plotted in found.items() if plotted]


def _title(row: EvidenceRow) -> str:
    if row.trend in USER_FACING:
        return TITLES[0]
    return TITLES[1] if row.trend in CAUSES else TITLES[2]
