"""How fast something grows: a robust slope over the last hour, which single jumps and spikes do not bend."""

from __future__ import annotations

from collections import deque

HOUR = 3600.0
EVERY = 60.0
"""Seconds between the points that are kept: each is the median of what was seen since the last."""
POINTS = 61
LEAST = 15
"""Points below which nothing is said."""


class Slope:
    """Theil and Sen's: the median slope of all pairs of points, so that up to 29 % of them may be anything."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, float]] = deque(maxlen=POINTS)
        self._since: float | None = None
        self._recent: list[float] = []
        self.per_hour: float | None = None

    def add(self, at: float, value: float) -> None:
        """Takes one value; `at` is seconds of a clock that only goes forward."""
        if self._since is None:
            self._since = at
        self._recent.append(value)
        if at - self._since < EVERY:
            return
        self._points.append((at, median(self._recent)))
        self._since, self._recent = at, []
        if len(self._points) >= LEAST:
            self.per_hour = slope_of(list(self._points)) * HOUR


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
    """The middle value, or the mean of the two in the middle; `statistics` would cost its import at the start of every job."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
