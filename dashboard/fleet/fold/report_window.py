"""A report's window by the server's clock: its minute, its length, and what is too long for a
minute."""

from __future__ import annotations

import math
from dataclasses import dataclass

from compilewatch.wire.messages import MAX_JUDGED_WINDOW, Report

SKEW_TOLERANCE_S = 2.0
"""Seconds: a smaller offset is the network's, and correcting it would move windows for nothing."""

_ROUND_DIGITS = 3
"""Of a second, after the point: a float near 1.8e9 is exact to a quarter of a microsecond only."""

LAST_MOMENT_S = 253_402_300_799.0
"""The end of the year 9999, beyond which no date can be stored."""


@dataclass(frozen=True, slots=True)
class Window:
    """One window; Unix seconds by the server's clock, minutes since 1970."""

    start: float
    end: float
    first_minute: int
    minute: int
    long: bool
    offset: float
    _shift: float

    @property
    def seconds(self) -> float:
        """How much time it covers."""
        return self.end - self.start

    def moment(self, agent_time: float) -> float:
        """A time of the agent's by the server's clock, kept to what can be stored as a date."""
        return min(max(agent_time + self._shift, 0.0), LAST_MOMENT_S)


def correct_window(report: Report, clock_offset: float) -> Window:
    """The window of a report whose sender's clock is behind by `clock_offset` seconds."""
    shift = clock_offset if abs(clock_offset) > SKEW_TOLERANCE_S else 0.0
    start, end = report.window[0] + shift, report.window[1] + shift
    minute = minute_of_end(end)
    # A window merged in an outage is too coarse to be judged by the minute.
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
    """The minute that holds the moment just before the end: an end exactly on a boundary closes the
    minute before."""
    return math.ceil(round(end, _ROUND_DIGITS) / 60.0) - 1
