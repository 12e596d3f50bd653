"""Parser for the forms of Settings > Notifications: an invalid value raises an error that names its
field."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time
from typing import TypeVar
from zoneinfo import ZoneInfo

from django.http import QueryDict

from dashboard.alerts.models import Channel
from dashboard.alerts.services.rules import RuleError, RuleInput

T = TypeVar("T")


def rule_read(given: QueryDict, channels: dict[str, Channel]) -> RuleInput:
    """Parses the form of a rule; raises RuleError."""
    channel = channels.get(given.get("channel", ""))
    if channel is None:
        raise RuleError("channel", "choose a channel of this project.")
    to = given.get("escalate_to", "")
    if to and to not in channels:
        raise RuleError("escalate_to", "choose a channel of this project.")
    return RuleInput(
        channel=channel,
        severities=given.getlist("severities"),
        environments=_names(given.get("environments", "")),
        models=_names(given.get("models", "")),
        quiet_from=_maybe(given, "quiet_from", _wall, "a time such as 22:00"),
        quiet_until=_maybe(given, "quiet_until", _wall, "a time such as 07:00"),
        roll_back_passes=given.get("roll_back_passes") == "yes",
        repeat_minutes=_maybe(given, "repeat_minutes", _whole, "a number of minutes"),
        escalate_minutes=_maybe(given, "escalate_minutes", _whole, "a number of minutes"),
        escalate_to=channels[to] if to else None,
    )


def moment_read(given: QueryDict, name: str, zone: ZoneInfo) -> datetime | None:
    """Parses a browser's date-time field in the project's time zone; None if it is empty."""
    return _maybe(given, name, lambda text: _there(text, zone), "a date and a time")


def _maybe(given: QueryDict, name: str, read: Callable[[str], T], expected: str) -> T | None:
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        return read(text)
    except (ValueError, OverflowError) as error:
        raise RuleError(name, f"{text[:40]!r} is not {expected}.") from error


def _wall(text: str) -> time:
    wall = time.fromisoformat(text)
    if wall.tzinfo is not None:
        raise ValueError(text)
    return wall


def _there(text: str, zone: ZoneInfo) -> datetime:
    """Raises OverflowError for years that UTC cannot represent."""
    local = datetime.fromisoformat(text)
    if local.tzinfo is not None:
        raise ValueError(text)
    return local.replace(tzinfo=zone).astimezone(UTC)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise ValueError(text)
    return int(text)


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
