"""Sparkline of p50 (above) and p99 (below) as SVG paths, each on its own scale, with gaps; rendered
on the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

WIDTH, HEIGHT = 172.0, 52.0
RIGHT = 168.0
_BANDS = ((8.0, 27.0), (31.0, 50.0))
_MIN_SPAN_RATIO = 0.26
MIN_BINS = 8
"""Minimum number of bins: fewer bins would look like a trend."""


@dataclass(frozen=True)
class SparkPath:
    """One path of one version with its role from 1 to 6; p99 is thin."""

    role: int
    thin: bool
    path: str


@dataclass(frozen=True)
class Spark:
    """The data of the template; numbers are texts with a decimal point in every locale."""

    lines: list[SparkPath]
    marks: list[tuple[str, str]]
    end: tuple[int, str, str] | None
    first: int = 0
    """The bin at the left edge: the first bin with data, so that a young model fills the chart."""
    since: int | None = None
    """The minute of the first bin, if it is later than the start of the range."""


def spark_draw(
    series: Sequence[tuple[int, Mapping[int, tuple[float, float]]]],
    bins: int,
    marks: Sequence[float],
) -> Spark:
    """Draws (role, {bin: (p50, p99)}) for each version, from back to front; `marks` are the bins of
    deployments."""
    first = min((place for _, points in series for place in points), default=0)
    first = min(first, max(0, bins - MIN_BINS))
    series = [
        (role, {place - first: values for place, values in points.items()})
        for role, points in series
    ]
    bins -= first
    lines: list[SparkPath] = []
    end: tuple[int, str, str] | None = None
    for band, thin in ((1, True), (0, False)):
        scale = _Scale(
            [values[band] for _, points in series for values in points.values()], *_BANDS[band]
        )
        for role, points in series:
            path = _path({place: scale.y(values[band]) for place, values in points.items()}, bins)
            if path:
                lines.append(SparkPath(role, thin, path))
            if points and not thin:
                last = max(points)
                end = (role, _x(last, bins), f"{scale.y(points[last][0]):.1f}")
    placed = [min(max(place - first, 0.0), bins - 1) for place in marks if place >= first - 1]
    return Spark(lines, [(_x(place, bins), _diamond(place, bins)) for place in placed], end, first)


class _Scale:
    """Scale from seconds to pixels; a minimum span keeps noise of a flat line small."""

    def __init__(self, values: Sequence[float], top: float, bottom: float) -> None:
        low, high = (min(values), max(values)) if values else (0.0, 0.0)
        middle = (low + high) / 2
        span = max(high - low, middle * _MIN_SPAN_RATIO, 1e-12)
        self._low, self._span, self._top, self._bottom = middle - span / 2, span, top, bottom

    def y(self, value: float) -> float:
        return self._bottom - (value - self._low) / self._span * (self._bottom - self._top)


def _path(points: Mapping[int, float], bins: int) -> str:
    """Connects consecutive bins and skips gaps; a single bin becomes a short dash."""
    parts: list[str] = []
    previous: int | None = None
    across = _list_positions(bins)
    for place in sorted(points):
        joined = previous is not None and place == previous + 1
        parts.append(f"{'L' if joined else 'M'}{across[place]} {points[place]:.1f}")
        if not joined and place + 1 not in points:
            parts.append("h1")
        previous = place
    return "".join(parts)


@lru_cache(maxsize=64)
def _list_positions(bins: int) -> tuple[str, ...]:
    """The x positions of the bins, shared by all lines of a page."""
    return tuple(_x(place, bins) for place in range(bins))


def _x(place: float, bins: int) -> str:
    return f"{place / max(bins - 1, 1) * RIGHT:.1f}"


def _diamond(place: float, bins: int) -> str:
    x = place / max(bins - 1, 1) * RIGHT
    return f"M{x:.1f} 8 {x - 3.5:.1f} 2h7z"
