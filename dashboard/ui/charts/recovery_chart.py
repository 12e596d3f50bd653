"""Recovery chart of an alert: p50 of the baseline and of the evaluated version, with the earlier
level as a band; rendered on the server."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.common import clock
from dashboard.ui.charts.axis_units import duration_scale
from dashboard.vocabulary.numbers import significant

LEFT, RIGHT, TOP, BOTTOM = 44.0, 414.0, 18.0, 130.0
BAND_RATIO = 0.05


@dataclass(frozen=True)
class ChartLabel:
    """A label or a mark at a position; the page's script converts `at` to the viewer's time
    zone."""

    x: str
    text: str
    at: datetime | None = None
    kind: str = ""


@dataclass(frozen=True)
class OnsetBand:
    """The minutes between which a regression began, with the left edge and the width of their
    band."""

    x: str
    width: str
    minutes: tuple[int, int]


@dataclass(frozen=True)
class RecoveryChart:
    """The data of the template."""

    unit: str
    lines: list[tuple[int, str]]
    grid: list[tuple[str, str]]
    times: list[ChartLabel]
    marks: list[ChartLabel]
    band: tuple[str, str] | None
    onset: OnsetBand | None
    """The interval of the onset; None if it is unknown or not drawn."""
    ends: str
    bounds: list[str]
    """Known bounds of versions that have no point in some bins."""


@dataclass(frozen=True)
class ChartSpan:
    """Time span of the chart in minutes, and length of a bin."""

    start: int
    end: int
    bin: int

    def x(self, minute: float) -> float:
        """The x position of a minute."""
        share = (minute - self.start) / max(self.end - self.start, 1)
        return LEFT + min(max(share, 0.0), 1.0) * (RIGHT - LEFT)


def recovery_draw(
    span: ChartSpan,
    series: Sequence[tuple[int, Mapping[int, float]]],
    marks: Sequence[tuple[int, str]],
    level: float | None,
    bounds: Sequence[str] = (),
    onset: tuple[int, int] | None = None,
) -> RecoveryChart | None:
    """Draws (role, {bin: seconds}); None without data. If only `bounds` are known, the chart names
    them and draws no line."""
    values = [value for _, points in series for value in points.values()]
    if not values:
        return RecoveryChart("", [], [], [], [], None, None, "", list(bounds)) if bounds else None
    factor, unit = duration_scale(max(values))
    ticks = _ticks(
        min([*values, *([level * (1 - BAND_RATIO)] if level else [])]) * factor,
        max(values) * factor,
    )
    low, high = ticks[0], ticks[-1]

    def y(value: float) -> str:
        return f"{BOTTOM - (value * factor - low) / (high - low) * (BOTTOM - TOP):.1f}"

    lines = [(role, _path(points, span, y)) for role, points in series if points]
    top = y(level * (1 + BAND_RATIO)) if level else ""
    return RecoveryChart(
        unit=unit,
        lines=lines,
        grid=[(y(tick / factor), significant(tick, 6)) for tick in ticks],
        times=_times(span),
        marks=[
            ChartLabel(f"{span.x(minute):.1f}", "", kind=kind)
            for minute, kind in marks
            if span.start <= minute <= span.end
        ],
        band=(top, f"{float(y(level * (1 - BAND_RATIO))) - float(top):.1f}") if level else None,
        onset=_place_onset(span, onset),
        ends=f"{RIGHT:.0f}",
        bounds=list(bounds),
    )


def _place_onset(span: ChartSpan, onset: tuple[int, int] | None) -> OnsetBand | None:
    """The band of an onset; at least three pixels, so that a minute of a day is visible."""
    if onset is None or onset[1] < span.start or onset[0] > span.end:
        return None
    left, right = span.x(onset[0]), span.x(onset[1] + 1)
    width = max(right - left, 3.0)
    return OnsetBand(f"{min(left, RIGHT - width):.1f}", f"{width:.1f}", onset)


def choose_span(deployed: int, until: int, *, minutes_from: int = 0) -> ChartSpan:
    """The span from half an hour before the deployment to `until`, in at most 120 bins. Spans of
    more than a day and a half, or beyond the retention of minutes, use hourly data."""
    start = deployed - 30
    length = max(until - start, 30)
    bin = math.ceil(length / 120)
    if length > 36 * 60 or start < minutes_from:
        bin = math.ceil(bin / 60) * 60
    return ChartSpan(start // bin * bin, until, bin)


def _path(points: Mapping[int, float], span: ChartSpan, y: object) -> str:
    assert callable(y)
    parts, previous = [], None
    for place in sorted(points):
        step = "L" if previous is not None and place == previous + 1 else "M"
        parts.append(
            f"{step}{span.x(span.start + (place + 0.5) * span.bin):.1f} {y(points[place])}"
        )
        previous = place
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Three to five round numbers in the range of the values."""
    room = max((high - low) * 0.15, high * 0.1, 1e-9)
    low, high = max(0.0, low - room), high + room
    rough = (high - low) / 3
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _times(span: ChartSpan) -> list[ChartLabel]:
    """Three times within the chart."""
    minutes = [span.start + (span.end - span.start) * share // 6 for share in (1, 3, 5)]
    return [
        ChartLabel(
            f"{span.x(minute):.1f}", f"{clock.at_minute(minute):%H:%M}", clock.at_minute(minute)
        )
        for minute in minutes
    ]
