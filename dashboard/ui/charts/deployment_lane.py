"""Deployment lane: one row per version or model, with its verdicts as spans of time.

Positions are percentages, so that labels keep 11 px at every width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.common import clock
from dashboard.vocabulary import numbers

ROLL_BACK, WATCH, HEALTHY = "roll_back", "watch", "healthy"
NOT_ENOUGH_DATA, BASELINE = "not_enough_data", "baseline"
STATES = {
    ROLL_BACK: ("rollback", "ROLL BACK"),
    WATCH: ("watch", "WATCH"),
    NOT_ENOUGH_DATA: ("nodata", "NOT ENOUGH DATA"),
    HEALTHY: ("healthy", "HEALTHY"),
    BASELINE: ("base", "baseline"),
}
"""CSS class and name of each state of a span."""
URGENT = (ROLL_BACK, WATCH)
NARROW_PX, WIDE_PX = 160, 480
"""The least widths of a lane on a phone of 320 px and on a screen of more than 720 px."""
CHARACTER_PX, MARK_PX, PADDING_PX = 6.2, 14, 12
LEAST_PERCENT = 0.4
_HOUR, DAY = 60, 1440
TICK_MINUTES = (
    *(5, 10, 15, 30),
    *(_HOUR * count for count in (1, 2, 3, 6, 12)),
    *(DAY * count for count in (1, 2, 7, 14, 30, 90, 365)),
)
MAX_TICKS = 6


@dataclass(frozen=True)
class LaneSpan:
    """A state from one minute to another, the end exclusive. `label` is usually the version."""

    start: int
    end: int
    state: str
    label: str = ""


@dataclass(frozen=True)
class LaneRow:
    """A model or a version, its spans in order, and (minute, state) of its alerts."""

    name: str
    spans: Sequence[LaneSpan]
    href: str = ""
    alerts: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True)
class DrawnSpan:
    """A span in percent of the lane. `wide` and `narrow` are the labels that fit, or empty."""

    x: str
    width: str
    css: str
    mark: str
    wide: str
    narrow: str
    title: str


@dataclass(frozen=True)
class DrawnRow:
    """A row of the drawing; alerts as (x in percent, CSS class)."""

    name: str
    href: str
    spans: list[DrawnSpan]
    alerts: list[tuple[str, str]]


@dataclass(frozen=True)
class LaneTick:
    """A label of the axis. `at` is converted by the page's script; None for a date."""

    x: str
    text: str
    at: datetime | None
    anchor: str


@dataclass(frozen=True)
class DeploymentLane:
    """The drawing and its accessible name."""

    rows: list[DrawnRow]
    ticks: list[LaneTick]
    sentence: str


def build_deployment_lane(
    rows: Sequence[LaneRow], start: int, end: int, subject: str
) -> DeploymentLane:
    """Draws the minutes from `start` to `end`. `subject` is the noun of a row: "model"."""
    scale = _Scale(start, max(end, start + 1))
    return DeploymentLane(
        rows=[_draw_row(row, scale) for row in rows],
        ticks=_ticks(scale),
        sentence=_sentence(rows, scale, subject),
    )


@dataclass(frozen=True)
class _Scale:
    start: int
    end: int

    def percent(self, minute: int) -> float:
        share = (minute - self.start) / (self.end - self.start)
        return 100 * min(max(share, 0.0), 1.0)

    def overlaps(self, span: LaneSpan) -> bool:
        return span.start < self.end and span.end > self.start


def _draw_row(row: LaneRow, scale: _Scale) -> DrawnRow:
    return DrawnRow(
        name=row.name,
        href=row.href,
        spans=[_draw_span(span, scale) for span in row.spans if scale.overlaps(span)],
        alerts=[
            (f"{scale.percent(minute):.2f}", STATES.get(state, STATES[WATCH])[0])
            for minute, state in row.alerts
            if scale.start <= minute <= scale.end
        ],
    )


def _draw_span(span: LaneSpan, scale: _Scale) -> DrawnSpan:
    state = span.state if span.state in STATES else NOT_ENOUGH_DATA
    css, name = STATES[state]
    left = scale.percent(span.start)
    width = max(scale.percent(span.end) - left, LEAST_PERCENT)
    left = min(left, 100 - width)
    mark = "" if state == BASELINE or width * WIDE_PX / 100 < MARK_PX + 4 else state
    first, last = max(span.start, scale.start), min(span.end, scale.end)
    return DrawnSpan(
        x=f"{left:.2f}",
        width=f"{width:.2f}",
        css=css,
        mark=mark,
        wide=_fit(span.label, width * WIDE_PX / 100, bool(mark)),
        narrow=_fit(span.label, width * NARROW_PX / 100, bool(mark)),
        title=f"{span.label} {name}, {clock.format_minutes_between(first, last)}".strip(),
    )


def _fit(label: str, width: float, marked: bool) -> str:
    """The label, or its last part such as ".3", or nothing."""
    room = width - PADDING_PX - (MARK_PX if marked else 0)
    short = f".{label.rpartition('.')[2]}" if "." in label else ""
    return next((text for text in (label, short) if len(text) * CHARACTER_PX <= room), "")


def _ticks(scale: _Scale) -> list[LaneTick]:
    """Round times, and the end of the lane at its right edge."""
    length = scale.end - scale.start
    step = next((one for one in TICK_MINUTES if length / one <= MAX_TICKS), TICK_MINUTES[-1])
    first = -(-scale.start // step) * step
    kept = [minute for minute in range(first, scale.end, step) if 3 <= scale.percent(minute) <= 88]
    return [
        *(_tick(scale.percent(minute), minute, step >= DAY, "cen") for minute in kept),
        _tick(100.0, scale.end, False, "end"),
    ]


def _tick(x: float, minute: int, is_date: bool, anchor: str) -> LaneTick:
    at = clock.at_minute(minute)
    if is_date:
        return LaneTick(f"{x:.2f}", f"{at.day} {at:%b}", None, anchor)
    return LaneTick(f"{x:.2f}", f"{at:%H:%M}", at, anchor)


def _sentence(rows: Sequence[LaneRow], scale: _Scale, subject: str) -> str:
    """The range, the number of rows, and the newest verdict of each urgent state."""
    span = clock.format_minutes_between(scale.start, scale.end)
    what = f"Deployments and verdicts of {numbers.plural(len(rows), subject)}, {span}"
    changes = []
    for state in URGENT:
        found = [
            (one.start, row.name)
            for row in rows
            for one in row.spans
            if one.state == state and scale.overlaps(one)
        ]
        if found:
            minute, name = max(found)
            since = f"at {clock.format_minute(minute)}" if minute > scale.start else "before"
            changes.append(f"{name} became {STATES[state][1]} {since}")
    return f"{what}; {'; '.join(changes)}." if changes else f"{what}; no ROLL BACK or WATCH."
