"""Report window: the minute and length of a report by the server's clock."""

from __future__ import annotations

import math
from dataclasses import dataclass

from compilewatch.wire.messages import MAX_JUDGED_WINDOW, Report

SKEW_TOLERANCE_S = 2.0
"""Offsets below this limit result from network delay and are not corrected."""

_ROUND_DIGITS = 3
"""Decimal places of a second. A float near 1.8e9 is exact only to a quarter of a microsecond."""

LAST_MOMENT_S = 253_402_300_799.0
"""End of the year 9999, the last date that can be stored."""


@dataclass(frozen=True, slots=True)
class Window:
    """One window, in Unix seconds of the server's clock and minutes since 1970."""

    start: float
    end: float
    first_minute: int
    minute: int
    long: bool
    offset: float
    _shift: float

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return self.end - self.start

    def moment(self, agent_time: float) -> float:
        """Convert an agent's time to the server's clock, clamped to dates that can be stored."""
        return min(max(agent_time + self._shift, 0.0), LAST_MOMENT_S)


def correct_window(report: Report, clock_offset: float) -> Window:
    """Return the window of a report from a sender whose clock is `clock_offset` seconds behind."""
    shift = clock_offset if abs(clock_offset) > SKEW_TOLERANCE_S else 0.0
    start, end = report.window[0] + shift, report.window[1] + shift
    minute = minute_of_end(end)
    # A window merged during an outage is too coarse to be evaluated by the minute.
    long = round(end - start, _ROUND_DIGITS) > MAX_JUDGED_WINDOW
    return Window(
        start=start,
        end=end,
        first_minute=min(int(round(start, _ROUND_DIGITS) // 60), minute) if long else minute,
        minute=minute,
        long=long,
        offset=clock_offset,
        _shift=shift,
    )


def minute_of_end(end: float) -> int:
    """Return the minute before the end of a window: an end on a boundary belongs to the minute
    before."""
    return math.ceil(round(end, _ROUND_DIGITS) / 60.0) - 1
