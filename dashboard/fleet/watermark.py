"""When a minute is over: closed for judging 30 s after its end."""

CLOSE_DELAY_S = 30.0
"""Seconds after a minute's end that its last windows have to arrive in."""

FOLD_MARGIN_S = 10.0
"""Seconds: a fold that begins this close before a minute closes may commit after it was judged."""


def closed_minute(now: float) -> int:
    """The last minute that is closed at `now` (Unix seconds)."""
    return int((now - CLOSE_DELAY_S) // 60) - 1


def is_late(minute: int, received: float) -> bool:
    """Whether a window of this minute came after the minute was closed."""
    return minute <= closed_minute(received)


def find_first_on_time_minute(now: float) -> int:
    """Data of minutes before this one, folded from `now` on, may come after they were judged."""
    return closed_minute(now + FOLD_MARGIN_S) + 1
