"""Retention: days for which a project retains its data. Findings, verdicts and alerts are retained
indefinitely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

MAX_REPORT_AGE_DAYS = 7
"""Days after which a report is refused as too old. Data with a longer retention can still include
late reports."""


class RetentionError(ValueError):
    """An invalid number of days. The text names the setting and the expected value; `field`,
    `given` and `expected` let a page use its own label."""

    def __init__(self, name: str, given: str, expected: str) -> None:
        super().__init__(f"{name} is {given}, expected {expected}.")
        self.field, self.given, self.expected = name, given, expected


@dataclass(frozen=True)
class Retention:
    """Retention in days. A day's data remains until that many whole days have passed after it."""

    instance_minutes: int = 8
    version_minutes: int = 35
    version_hours: int = 400
    compile_events: int = 35

    def as_dict(self) -> dict[str, int]:
        """The days by setting name."""
        return asdict(self)


RETENTION_LABELS = {
    "instance_minutes": "per-instance minutes, the input of verdicts",
    "version_minutes": "per-version minutes, for ranges of up to a day",
    "version_hours": "per-version hours, for longer ranges; also instances and series",
    "compile_events": "single compilations",
}
RETENTION_BOUNDS_DAYS = {
    "instance_minutes": (MAX_REPORT_AGE_DAYS + 1, 90),
    "version_minutes": (MAX_REPORT_AGE_DAYS + 1, 400),
    "version_hours": (35, 3650),
    "compile_events": (MAX_REPORT_AGE_DAYS + 1, 400),
}


def read_retention(settings: Mapping[str, Any]) -> Retention:
    """The retention from a project's settings. Absent or invalid numbers have their defaults."""
    told = settings.get("retention")
    if not isinstance(told, Mapping):
        return Retention()
    known = {
        name: days
        for name, days in told.items()
        if name in RETENTION_BOUNDS_DAYS and isinstance(days, int) and _is_within_bounds(name, days)
    }
    return Retention(**known)


def check_retention(retention: Retention, changes: Mapping[str, int]) -> Retention:
    """Returns the retention with some numbers changed. Raises RetentionError."""
    for name, days in changes.items():
        if name not in RETENTION_BOUNDS_DAYS:
            raise RetentionError(
                name, "not a retention setting", f"one of {', '.join(RETENTION_BOUNDS_DAYS)}"
            )
        if not _is_within_bounds(name, days):
            raise RetentionError(name, str(days), describe_day_bounds(name))
    changed = Retention(**{**retention.as_dict(), **changes})
    if changed.version_hours < changed.version_minutes:
        least = f"at least {changed.version_minutes} days, the retention of per-version minutes"
        raise RetentionError("version_hours", str(changed.version_hours), least)
    return changed


def describe_day_bounds(name: str) -> str:
    """Describes the bounds of a number of days."""
    least, most = RETENTION_BOUNDS_DAYS[name]
    return f"{least} to {most} days"


def longest_retention(kept: list[Retention]) -> Retention:
    """The maximum of each number; the defaults if the list is empty."""
    return Retention(
        **{
            field.name: max(getattr(one, field.name) for one in kept or [Retention()])
            for field in fields(Retention)
        }
    )


def _is_within_bounds(name: str, days: int) -> bool:
    least, most = RETENTION_BOUNDS_DAYS[name]
    return least <= days <= most
