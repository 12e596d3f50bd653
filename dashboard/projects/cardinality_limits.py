"""How many different things a project may report before new ones are counted together under
`other`; no report is refused for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

MAX_LIMIT = 1_000_000


class LimitError(ValueError):
    """A limit that cannot be; the text names it and what was expected."""


@dataclass(frozen=True)
class CardinalityLimits:
    """One number a kind of thing."""

    environment: int = 20
    series: int = 5_000
    version: int = 200
    instance: int = 10_000
    finding: int = 2_000

    def as_dict(self) -> dict[str, int]:
        """By name."""
        return asdict(self)


LIMIT_PERIODS = {
    "environment": "in 30 days",
    "series": "in 7 days",
    "version": "in 30 days",
    "instance": "in the last hour",
    "finding": "new today",
}
"""Over which time each kind is counted."""


def read_limits(settings: Mapping[str, Any]) -> CardinalityLimits:
    """What a project's settings say; a number that is absent or out of bounds is the default's."""
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
    """The limits with some numbers changed; raises LimitError for what cannot be."""
    for name, number in changes.items():
        if name not in LIMIT_PERIODS:
            raise LimitError(f"{name} has no limit, expected one of {', '.join(LIMIT_PERIODS)}.")
        if not _is_valid_limit(number):
            raise LimitError(
                f"{name} is {number!r}, expected a whole number from 1 to {MAX_LIMIT:,}."
            )
    return CardinalityLimits(**{**limits.as_dict(), **changes})


def describe_limit(*, kind: str, limit: int, example: str = "") -> str:
    """What a page says while a limit is reached."""
    named = f", the last was {example}" if example else ""
    return f"{kind}: {limit:,} of {limit:,} {LIMIT_PERIODS[kind]}; new ones go into `other`{named}"


def _is_valid_limit(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= MAX_LIMIT
