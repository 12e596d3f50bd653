"""Cardinality limits: distinct names that a project may report before further names are counted as
`other`. Reports are never refused for this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

MAX_LIMIT = 1_000_000


class LimitError(ValueError):
    """An invalid limit; the text names the limit and the expected value."""


@dataclass(frozen=True)
class CardinalityLimits:
    """Maximum of distinct names for each kind."""

    environment: int = 20
    series: int = 5_000
    version: int = 200
    instance: int = 10_000
    finding: int = 2_000

    def as_dict(self) -> dict[str, int]:
        """The limits by name."""
        return asdict(self)


LIMIT_PERIODS = {
    "environment": "in 30 days",
    "series": "in 7 days",
    "version": "in 30 days",
    "instance": "in the last hour",
    "finding": "new today",
}
"""Period over which each kind is counted."""


def read_limits(settings: Mapping[str, Any]) -> CardinalityLimits:
    """The limits from a project's settings. Absent or invalid numbers have their defaults."""
    told = settings.get("limits")
    if not isinstance(told, Mapping):
        return CardinalityLimits()
    return CardinalityLimits(
        **{
            name: number
            for name, number in told.items()
            if name in LIMIT_PERIODS and _is_valid_limit(number)
        }
    )


def check_limits(limits: CardinalityLimits, changes: Mapping[str, Any]) -> CardinalityLimits:
    """Returns the limits with some numbers changed. Raises LimitError."""
    for name, number in changes.items():
        if name not in LIMIT_PERIODS:
            raise LimitError(f"{name} has no limit, expected one of {', '.join(LIMIT_PERIODS)}.")
        if not _is_valid_limit(number):
            raise LimitError(
                f"{name} is {number!r}, expected a whole number from 1 to {MAX_LIMIT:,}."
            )
    return CardinalityLimits(**{**limits.as_dict(), **changes})


def describe_limit(*, kind: str, limit: int, example: str = "") -> str:
    """Describes a limit that is reached, for pages."""
    named = f", the last one was {example}" if example else ""
    return (
        f"{kind}: {limit:,} of {limit:,} {LIMIT_PERIODS[kind]}; new ones are grouped as "
        f"`other`{named}"
    )


def _is_valid_limit(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= MAX_LIMIT
