"""Confidence bands of charts: 95% intervals of a quantile or a share from the number of calls only.

The bands exclude the spread between instances, which the intervals of verdicts include."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dashboard.fleet.fold.cached_quantiles import Question
from dashboard.fleet.fold.sketch_columns import SketchColumns
from dashboard.fleet.metrics.aggregate import CallTotals

Z = 1.96
MIN_VISIBLE_RATIO = 0.02
"""Relative half width below which a band is not visible; sketches are exact to 1.1%."""

Interval = tuple[float, float]


def quantile_intervals(sketches: SketchColumns, q: float) -> list[Interval | None]:
    """The interval of each sketch's quantile from order statistics; None if the interval is too
    narrow to show or the sketch is empty."""
    half = Z * np.sqrt(q * (1 - q) / np.maximum(sketches.count, 1))
    shares = (np.maximum(0.0, q - half), q, np.minimum(1.0, q + half))
    return [
        _interval(*values)
        for values in zip(*(sketches.quantile(share) for share in shares), strict=True)
    ]


def _interval(low: float | None, middle: float | None, high: float | None) -> Interval | None:
    if (
        low is None
        or middle is None
        or high is None
        or max(high - middle, middle - low) <= MIN_VISIBLE_RATIO * middle
    ):
        return None
    return min(low, middle), max(high, middle)


def share_interval(hits: int, of: int) -> Interval | None:
    """Wilson's interval of a share. None if the interval is too narrow to show, or if no or all
    calls were hits: a band over a flat zero would look like an event."""
    if not of or hits in (0, of):
        return None
    share = hits / of
    centre = (share + Z * Z / (2 * of)) / (1 + Z * Z / of)
    half = Z * math.sqrt(share * (1 - share) / of + Z * Z / (4 * of * of)) / (1 + Z * Z / of)
    low, high = max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
    return (
        None
        if high - low <= max(MIN_VISIBLE_RATIO * share, MIN_VISIBLE_RATIO / 100)
        else (low, high)
    )


def _of_quantile(q: float) -> Question[Interval | None]:
    return lambda sketches: quantile_intervals(sketches, q)


_P50, _P95, _P99 = _of_quantile(0.5), _of_quantile(0.95), _of_quantile(0.99)
METRIC_INTERVALS: dict[str, Callable[[CallTotals], Interval | None]] = {
    "p50": lambda calls: calls.sketch.answer(_P50),
    "p95": lambda calls: calls.sketch.answer(_P95),
    "p99": lambda calls: calls.sketch.answer(_P99),
    "eager": lambda calls: share_interval(calls.eager, calls.known),
    "stalled": lambda calls: share_interval(calls.stalled, calls.reporting),
    "errors": lambda calls: share_interval(calls.errors, calls.told),
}
