"""Driving chart of an alert: one metric of both versions from before the deployment, drawn on the
server. Positions are percents in x and pixels in y: lines stretch with the page, text does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dashboard.common import clock
from dashboard.vocabulary.numbers import significant

WIDTH, HEIGHT, TOP, BOTTOM = 1000.0, 260.0, 18.0, 240.0
LABEL_HEIGHT, LABEL_PERCENT, NARROW_LABEL_PERCENT = 14.0, 14.0, 18.0
"""Room of a label, and of a label without its time on a phone."""
MIN_BAND_PERCENT = 0.4
BAND_RATIO = 0.05
TIME_PLACES = (1, 3, 5, 7)
"""Eighths of the width with a time label; phones show the first and the last of them."""


@dataclass(frozen=True)
class ChartSpan:
    """Time span of the chart in minutes, and length of a bin."""

    start: int
    end: int
    bin: int

    def x(self, minute: float) -> float:
        """The position of a minute in percent."""
        share = (minute - self.start) / max(self.end - self.start, 1)
        return min(max(share, 0.0), 1.0) * 100


@dataclass(frozen=True)
class ChartSeries:
    """One version: values by bin with an optional interval, or dots as (minute, value). Values are
    in the unit of the chart."""

    role: int
    name: str
    points: Mapping[int, float]
    low: Mapping[int, float] = field(default_factory=dict)
    high: Mapping[int, float] = field(default_factory=dict)
    dots: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class ChartMark:
    """An event: a deployment, or a verdict of the alert. `text` labels its line."""

    minute: int
    kind: str
    text: str


@dataclass(frozen=True)
class PlacedMark:
    """A mark with its position in percent; `at` is None for a mark without a label, and the label
    is on the left side of the line if `left`."""

    x: str
    kind: str
    text: str
    at: datetime | None
    left: bool


@dataclass(frozen=True)
class PlacedLabel:
    """A text at a position in percent; the page's script converts `at` to the reader's zone."""

    x: str
    text: str
    at: datetime
    narrow: bool
    """Whether a phone shows the label."""


@dataclass(frozen=True)
class PlacedEnd:
    """The newest value of a version: its point and the height of its label."""

    role: int
    x: str
    y: str
    label_y: str
    text: str


@dataclass(frozen=True)
class PlacedOnset:
    """The time of the regression: left edge, width and start; near the right edge of the chart the
    label is on the left of the start."""

    x: str
    width: str
    at: datetime
    left: bool


@dataclass(frozen=True)
class DrivingChart:
    """The data of the template `ui/alerts/driving_chart.html`."""

    ticks: list[tuple[str, str]]
    from_zero: bool
    times: list[PlacedLabel]
    first_at: datetime
    last_at: datetime
    areas: list[tuple[int, str]]
    lines: list[tuple[int, str]]
    dots: list[tuple[int, str, str]]
    ends: list[PlacedEnd]
    marks: list[PlacedMark]
    onset: PlacedOnset | None
    band: tuple[str, str] | None
    """The level to recover, with 5% on both sides."""

    @property
    def long(self) -> bool:
        """Whether the span is longer than a day, so that time labels show the date."""
        return (self.last_at - self.first_at).total_seconds() > 86400


def draw_driving_chart(
    *,
    span: ChartSpan,
    series: Sequence[ChartSeries],
    marks: Iterable[ChartMark],
    zero: bool,
    level: float | None = None,
    onset: int | None = None,
    until: int | None = None,
) -> DrivingChart | None:
    """Draws the series; None without a value. `zero`: the axis begins at zero, as for shares and
    counts. The regression lasts from `onset` to `until`, or to the end of the chart."""
    series = [_keep_finite(one) for one in series]
    values = [value for one in series for value in _values(one)]
    if not values:
        return None
    band = [level * (1 - BAND_RATIO), level * (1 + BAND_RATIO)] if level else []
    ticks = choose_ticks(min([*values, *band]), max([*values, *band]), zero=zero)

    def y(value: float) -> float:
        return BOTTOM - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (BOTTOM - TOP)

    return DrivingChart(
        ticks=[(f"{y(tick):.1f}", significant(tick, 6)) for tick in ticks],
        from_zero=ticks[0] == 0,
        times=_place_times(span),
        first_at=clock.at_minute(span.start),
        last_at=clock.at_minute(span.end),
        areas=[(one.role, path) for one in series if (path := _area(one, span, y))],
        lines=[(one.role, path) for one in series if (path := _line(one, span, y))],
        dots=[
            (one.role, f"{span.x(minute):.2f}", f"{y(value):.1f}")
            for one in series
            for minute, value in [*one.dots, *_lone_points(one, span)]
        ],
        ends=_place_ends(series, span, y),
        marks=_place_marks(marks, span),
        onset=_place_onset(span, onset, until),
        band=(f"{y(band[1]):.1f}", f"{y(band[0]) - y(band[1]):.1f}") if band else None,
    )


def choose_span(deployed: int, until: int, *, minutes_from: int = 0) -> ChartSpan:
    """The span from half an hour before the deployment to `until`, in at most 120 bins. Spans of
    more than a day and a half, or beyond the retention of minutes, use hourly data."""
    start = deployed - 30
    length = max(until - start, 30)
    bin = math.ceil(length / 120)
    if length > 36 * 60 or start < minutes_from:
        bin = math.ceil(bin / 60) * 60
    return ChartSpan(start // bin * bin, max(until, start // bin * bin + 30), bin)


def choose_ticks(low: float, high: float, *, zero: bool) -> list[float]:
    """Four to seven round numbers around the values, from zero for shares and counts."""
    room = max((high - low) * 0.12, abs(high) * 0.02, 1e-9)
    low, high = (min(0.0, low) if zero else low - room), high + room
    if not zero and low < 0 <= low + room:
        low = 0.0
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _keep_finite(one: ChartSeries) -> ChartSeries:
    points = {place: value for place, value in one.points.items() if math.isfinite(value)}
    both = [
        place
        for place in points
        if math.isfinite(one.low.get(place, math.nan))
        and math.isfinite(one.high.get(place, math.nan))
    ]
    return ChartSeries(
        one.role,
        one.name,
        points,
        {place: one.low[place] for place in both},
        {place: one.high[place] for place in both},
        [dot for dot in one.dots if math.isfinite(dot[1])],
    )


def _values(one: ChartSeries) -> list[float]:
    return [
        *one.points.values(),
        *one.low.values(),
        *one.high.values(),
        *(value for _, value in one.dots),
    ]


def _middle(span: ChartSpan, place: int) -> float:
    return span.start + (place + 0.5) * span.bin


def _runs(places: Iterable[int]) -> list[list[int]]:
    """Bins without a gap between them."""
    runs: list[list[int]] = []
    for place in sorted(places):
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _stroke(places: Iterable[int], values: Mapping[int, float], span: ChartSpan, y: object) -> str:
    assert callable(y)
    return "L".join(
        f"{span.x(_middle(span, place)) * WIDTH / 100:.1f} {y(values[place]):.1f}"
        for place in places
    )


def _line(one: ChartSeries, span: ChartSpan, y: object) -> str:
    runs = [run for run in _runs(one.points) if len(run) > 1]
    return "".join(f"M{_stroke(run, one.points, span, y)}" for run in runs)


def _lone_points(one: ChartSeries, span: ChartSpan) -> list[tuple[float, float]]:
    """Values between two gaps: a line of one point is not visible."""
    runs = [run for run in _runs(one.points) if len(run) == 1]
    return [(_middle(span, run[0]), one.points[run[0]]) for run in runs]


def _area(one: ChartSeries, span: ChartSpan, y: object) -> str:
    runs = [run for run in _runs(one.low) if len(run) > 1]
    return "".join(
        f"M{_stroke(run, one.high, span, y)}L{_stroke(reversed(run), one.low, span, y)}Z"
        for run in runs
    )


def _place_ends(series: Sequence[ChartSeries], span: ChartSpan, y: object) -> list[PlacedEnd]:
    """The newest point of each line; labels of near points are moved apart."""
    assert callable(y)
    newest = [(one, max(one.points)) for one in series if one.points]
    heights = {one.role: float(y(one.points[place])) for one, place in newest}
    order = sorted(heights, key=lambda role: heights[role])
    labels: dict[int, float] = {}
    for role in order:
        lowest = max(labels.values(), default=-math.inf)
        labels[role] = max(heights[role] - 8, lowest + LABEL_HEIGHT, TOP - 6)
    return [
        PlacedEnd(
            one.role,
            f"{span.x(_middle(span, place)):.2f}",
            f"{heights[one.role]:.1f}",
            f"{labels[one.role]:.1f}",
            significant(one.points[place], 3),
        )
        for one, place in newest
    ]


def _place_marks(marks: Iterable[ChartMark], span: ChartSpan) -> list[PlacedMark]:
    """Lines at events. Labels of deployments are on the left, those of verdicts on the right; a
    label that would cross another one is left out."""
    placed: list[PlacedMark] = []
    inside = [one for one in marks if span.start <= one.minute <= span.end]
    worst = any(one.kind == "roll_back" for one in inside)
    taken: list[tuple[float, float]] = []
    for one in sorted(inside, key=lambda mark: (mark.kind == "deployment", mark.minute)):
        x = span.x(one.minute)
        left = x > 70 or (one.kind == "deployment" and x > NARROW_LABEL_PERCENT)
        room = (x - LABEL_PERCENT, x) if left else (x, x + LABEL_PERCENT)
        free = all(room[1] <= low or high <= room[0] for low, high in taken)
        named = free and not (one.kind == "watch" and worst)
        if named:
            taken.append(room)
        at = clock.at_minute(one.minute) if named else None
        placed.append(PlacedMark(f"{x:.2f}", one.kind, one.text, at, left))
    return placed


def _place_onset(span: ChartSpan, onset: int | None, until: int | None) -> PlacedOnset | None:
    if onset is None or not span.start <= onset <= span.end:
        return None
    left, right = span.x(onset), span.x(until) if until is not None else 100.0
    width = max(right - left, MIN_BAND_PERCENT)
    x = min(left, 100 - width)
    return PlacedOnset(f"{x:.2f}", f"{width:.2f}", clock.at_minute(onset), x > 100 - LABEL_PERCENT)


def _place_times(span: ChartSpan) -> list[PlacedLabel]:
    minutes = [span.start + (span.end - span.start) * eighth // 8 for eighth in TIME_PLACES]
    shape = "%-d %b %H:%M" if span.end - span.start > 1440 else "%H:%M"
    return [
        PlacedLabel(
            f"{span.x(minute):.2f}",
            f"{clock.at_minute(minute):{shape}}",
            clock.at_minute(minute),
            narrow=place in (0, len(minutes) - 1),
        )
        for place, minute in enumerate(minutes)
    ]
