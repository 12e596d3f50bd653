"""Clock: the only source of the current time; tests replace it."""

import re
import time
from datetime import UTC, datetime

TIMESTAMP_PATTERN = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d) UTC\b")
"""A moment in a text: complete and in UTC. Channels show it as it is; pages convert it to the
reader's zone."""


def now() -> datetime:
    """The current time, with its zone (UTC)."""
    return at(unix())


def unix() -> float:
    """The current time in Unix seconds."""
    return time.time()


def at(seconds: float) -> datetime:
    """The moment of a Unix time in seconds."""
    return datetime.fromtimestamp(seconds, UTC)


def minute_of(seconds: float) -> int:
    """The minute of a Unix time, in minutes since 1970."""
    return int(seconds // 60)


def at_minute(minute: int) -> datetime:
    """The start of a minute counted since 1970."""
    return at(minute * 60)


def format_timestamp(moment: datetime) -> str:
    """Formats a moment for sentences, messages and commands: 2026-11-24 23:35 UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def format_minute(minute: int) -> str:
    """Formats the start of a minute counted since 1970."""
    return format_timestamp(at_minute(minute))


def format_minutes_between(first: int, last: int) -> str:
    """Formats an interval of minutes: between two moments, or at one."""
    if first >= last:
        return f"at {format_minute(first)}"
    return f"between {format_minute(first)} and {format_minute(last)}"


def parse_timestamp(text: str) -> datetime | None:
    """Parses the text of a match of `TIMESTAMP_PATTERN`. None if the digits are not a date."""
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    except ValueError:
        return None
