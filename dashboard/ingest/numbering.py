"""Numbers of windows whose sender gives none, made of the time that they cover; pure code.

Such numbers order the windows of a sender, and a window that is sent again has the same ones. They
count microseconds, not windows."""

from __future__ import annotations

from compilewatch.wire.messages import MAX_WINDOW_AGE, Report, SeqRange

MICROSECONDS_PER_SECOND = 1_000_000
MAX_WINDOWS_PER_REPORT = 10**6
"""Windows that one report can stand for: an agent that merged more was away for longer than reports
are accepted for."""

SPARE_WINDOWS = 1000
"""Windows that a range may hold whatever its times say: windows that were closed early, a clock
that was set back."""
WINDOWS_PER_SECOND = 25
"""More than any agent closes: its shortest interval is 0.05 s."""


def derive_numbers(start: int, end: int) -> SeqRange:
    """The microseconds since 1970 from `start` to `end` (nanoseconds): the numbers of the next
    window follow these."""
    return start // 1000 + 1, end // 1000


def count_windows(report: Report) -> int:
    """How many windows a report stands for: an agent merges several in an outage; numbers made of
    time stand for one."""
    if _is_time_numbered(report):
        return 1
    return min(max(report.seq[1] - report.seq[0] + 1, 1), MAX_WINDOWS_PER_REPORT)


def count_allowed_numbers(report: Report) -> int:
    """How many numbers the range of a report may hold: as many windows as fit its times, or the
    numbers that are those times."""
    first, last = report.seq
    if _is_time_numbered(report):
        return last - first + 1
    seconds = min(report.window[1] - report.window[0], MAX_WINDOW_AGE)
    return SPARE_WINDOWS + int(seconds * WINDOWS_PER_SECOND)


def _is_time_numbered(report: Report) -> bool:
    """Whether both numbers are those of the window's times. A float holds the times to a quarter of
    a microsecond."""
    (first, last), (start, end) = report.seq, report.window
    return (
        abs(last - end * MICROSECONDS_PER_SECOND) < 2
        and abs(first - 1 - start * MICROSECONDS_PER_SECOND) < 2
    )
