"""Theil-Sen slope: a robust growth rate over the last hour.

Algorithm: the median of the slopes of all pairs of points. Values are first reduced to one median
per minute. The estimator has a breakdown point of 29%: that share of the points may be arbitrary,
so a single jump or spike does not change the slope.

Invariants: the clock is monotonic; pairs with equal times are left out; there is no result below
`MIN_POINTS` points. One thread, the agent's, uses an instance, so there is no lock.
Cost: with 61 points at most 1,830 slopes and one sort a minute; memory is constant.
Source: Theil (1950); Sen (1968), "Estimates of the Regression Coefficient Based on Kendall's
Tau"."""

from __future__ import annotations

from collections import deque

HOUR_S = 3600.0
POINT_INTERVAL_S = 60.0
"""Seconds between two points; a point is the median of the values since the last one."""
MAX_POINTS = 61
MIN_POINTS = 15
"""Minimum number of points for a slope."""


class Slope:
    """Theil-Sen slope of a stream of values."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, float]] = deque(maxlen=MAX_POINTS)
        self._since: float | None = None
        self._recent: list[float] = []
        self.per_hour: float | None = None

    def add(self, at: float, value: float) -> None:
        """Adds one value; `at` is in seconds of a monotonic clock."""
        if self._since is None:
            self._since = at
        self._recent.append(value)
        if at - self._since < POINT_INTERVAL_S:
            return
        self._points.append((at, median(self._recent)))
        self._since, self._recent = at, []
        if len(self._points) >= MIN_POINTS:
            self.per_hour = slope_of(list(self._points)) * HOUR_S


def slope_of(points: list[tuple[float, float]]) -> float:
    """The median slope of all pairs of points."""
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for number, earlier in enumerate(points)
        for later in points[number + 1 :]
        if later[0] > earlier[0]
    ]
    return median(slopes) if slopes else 0.0


def median(values: list[float]) -> float:
    """The median, without `statistics`, whose import would cost time at the start of every job."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
