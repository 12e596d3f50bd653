"""Driving charts: which charts of a model are large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboard.ui.charts.evidence_table import EvidenceRow
from dashboard.ui.charts.trends import Trend
from dashboard.vocabulary.severity import REGRESSED

MAX_LARGE = 4
USUAL_ORDER = ("p50", "eager", "p99", "throughput", "traffic", "errors")
"""Order of large charts whose metrics did not regress."""


def choose_large_charts(
    trends: Sequence[Trend], rows: Mapping[str, EvidenceRow], most: int = MAX_LARGE
) -> tuple[list[Trend], list[Trend]]:
    """The charts of the metrics behind the verdict, and the others: first what drives the verdict,
    then other regressions, then the usual order; charts without a value are never large."""

    def order(trend: Trend) -> tuple[bool, bool, bool, int]:
        row = rows.get(trend.key)
        usual = USUAL_ORDER.index(trend.key) if trend.key in USUAL_ORDER else len(USUAL_ORDER)
        worse = row is not None and row.label == REGRESSED
        return trend.empty, not (row is not None and row.drives), not worse, usual

    ordered = [trend for trend in sorted(trends, key=order) if not trend.empty]
    large = ordered[:most]
    return large, [trend for trend in trends if trend not in large]
