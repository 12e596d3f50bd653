"""The only place that asks what time it is; tests replace it."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """The time, with its zone (UTC)."""
    return at(unix())


def unix() -> float:
    """Unix seconds."""
    return time.time()


def at(seconds: float) -> datetime:
    """The moment of a number of Unix seconds."""
    return datetime.fromtimestamp(seconds, UTC)


def minute_of(seconds: float) -> int:
    """The minute a moment belongs to, as minutes since 1970."""
    return int(seconds // 60)


def at_minute(minute: int) -> datetime:
    """The start of a minute counted since 1970."""
    return at(minute * 60)
