"""Watermark: the last closed minute, CLOSE_DELAY_S after its end."""

CLOSE_DELAY_S = 30.0
"""Seconds after a minute's end in which its last windows may arrive."""

FOLD_MARGIN_S = 10.0
"""Safety margin in seconds: a fold that starts this close to a minute's closing may commit after
its evaluation."""


def closed_minute(now: float) -> int:
    """Return the last minute that is closed at `now` (Unix seconds)."""
    return int((now - CLOSE_DELAY_S) // 60) - 1


def is_late(minute: int, received: float) -> bool:
    """Return whether a window of this minute arrived after the minute was closed."""
    return minute <= closed_minute(received)


def find_first_on_time_minute(now: float) -> int:
    """Return the first minute whose data, folded from `now` on, cannot be late.

    Data of earlier minutes may arrive after their evaluation.
    """
    return closed_minute(now + FOLD_MARGIN_S) + 1
