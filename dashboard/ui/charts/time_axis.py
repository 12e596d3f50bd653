"""Time axis of a drawing: a bin size, and labelled ticks in percent of the width."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

DAY = 1440
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY)


@dataclass(frozen=True)
class TimeTick:
    """A tick: position in percent, text in UTC, and the time in ISO 8601 if the text is a time of
    day, so that the page's script can convert it."""

    x: float
    text: str
    at: str = ""
    anchor: str = "cen"


def choose_step(minutes: int, most: int) -> int:
    """The smallest step in minutes that divides a span into at most `most` bins."""
    return next((step for step in STEPS if -(-minutes // step) <= most), -(-minutes // most))


def build_time_ticks(first: int, last: int, most: int = 6) -> list[TimeTick]:
    """Ticks at round minutes within a span of minutes since 1970."""
    step = choose_step(max(1, last - first), most)
    start = -(-first // step) * step
    return [
        _tick(minute, 100 * (minute - first) / (last - first), dated=step >= 720)
        for minute in range(start, last, step)
    ]


def format_bin_start(minute: int, step: int) -> TimeTick:
    """The label of a bin that starts at a minute."""
    return _tick(minute, 0.0, dated=step >= 720)


def _tick(minute: int, x: float, *, dated: bool) -> TimeTick:
    at = datetime.fromtimestamp(60 * minute, UTC)
    anchor = "" if x < 3 else "end" if x > 97 else "cen"
    if dated and at.hour == at.minute == 0:
        return TimeTick(round(x, 2), f"{at.day} {at:%b}", anchor=anchor)
    if dated:
        return TimeTick(round(x, 2), f"{at.day} {at:%b} {at:%H:%M}", anchor=anchor)
    return TimeTick(round(x, 2), f"{at:%H:%M}", at.isoformat(), anchor)
