"""The only place that asks what time it is; tests replace it."""

import re
import time
from datetime import UTC, datetime

TIMESTAMP_PATTERN = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d) UTC\b")
"""A moment in a text: complete and in UTC, so that any channel can show it and any page can turn it
into the reader's zone."""


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


def format_timestamp(moment: datetime) -> str:
    """2026-11-24 23:35 UTC: how sentences, messages and commands write a moment."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def format_minute(minute: int) -> str:
    """The same of a minute counted since 1970."""
    return format_timestamp(at_minute(minute))


def parse_timestamp(text: str) -> datetime | None:
    """The moment that a match of WRITTEN stands for; None for digits that are no date."""
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    except ValueError:
        return None
