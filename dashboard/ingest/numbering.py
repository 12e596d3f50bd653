"""Numbers of windows whose sender gives none, made of the time that they cover; pure code.

Such numbers order the windows of a sender, and a window that is sent again has the same ones. They count microseconds, not windows."""

from __future__ import annotations

from compilewatch.wire.report import Report, SeqRange

MICROSECONDS = 1_000_000
MOST_WINDOWS = 10**6
"""Windows that one report can stand for: an agent that merged more was away for longer than reports are accepted for."""


def numbers_of(start: int, end: int) -> SeqRange:
    """The microseconds since 1970 from `start` to `end` (nanoseconds): the numbers of the next window follow these."""
    return start // 1000 + 1, end // 1000


def windows_of(report: Report) -> int:
    """How many windows a report stands for: an agent merges several in an outage; numbers made of time stand for one."""
    if _made_of_time(report):
        return 1
    return min(max(report.seq[1] - report.seq[0] + 1, 1), MOST_WINDOWS)


def _made_of_time(report: Report) -> bool:
    """Whether both numbers are those of the window's times. A float holds the times to a quarter of a microsecond."""
    (first, last), (start, end) = report.seq, report.window
    return abs(last - end * MICROSECONDS) < 2 and abs(first - 1 - start * MICROSECONDS) < 2
