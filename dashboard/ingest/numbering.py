"""Sequence numbers of windows whose sender supplies none, derived from the window's time. Pure
code.

The numbers order the windows of a sender. A window that is resent has the same numbers. They count
microseconds, not windows.
"""

from __future__ import annotations

from compilewatch.wire.messages import MAX_WINDOW_AGE, Report, SeqRange

MICROSECONDS_PER_SECOND = 1_000_000
MAX_WINDOWS_PER_REPORT = 10**6
"""Maximum number of windows in one report. An agent that merged more was offline for longer than
reports are accepted."""

SPARE_WINDOWS = 1000
"""Windows that a range may contain regardless of its times: early closes, and a clock that moved
backwards."""
WINDOWS_PER_SECOND = 25
"""More than any agent closes: the shortest interval is 0.05 s."""


def derive_numbers(start: int, end: int) -> SeqRange:
    """The microseconds since 1970 from `start` to `end` (both in nanoseconds). The numbers of the
    next window follow them."""
    return start // 1000 + 1, end // 1000


def count_windows(report: Report) -> int:
    """Number of windows in a report. An agent merges several windows in an outage; numbers derived
    from time are one window."""
    if _is_time_numbered(report):
        return 1
    return min(max(report.seq[1] - report.seq[0] + 1, 1), MAX_WINDOWS_PER_REPORT)


def count_allowed_numbers(report: Report) -> int:
    """Maximum length of a report's range: the windows that fit its times, or the numbers of those
    times."""
    first, last = report.seq
    if _is_time_numbered(report):
        return last - first + 1
    seconds = min(report.window[1] - report.window[0], MAX_WINDOW_AGE)
    return SPARE_WINDOWS + int(seconds * WINDOWS_PER_SECOND)


def _is_time_numbered(report: Report) -> bool:
    """True if both numbers derive from the window's times. A float resolves those times to a
    quarter of a microsecond."""
    (first, last), (start, end) = report.seq, report.window
    return (
        abs(last - end * MICROSECONDS_PER_SECOND) < 2
        and abs(first - 1 - start * MICROSECONDS_PER_SECOND) < 2
    )
