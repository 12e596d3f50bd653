"""How many reports a second a project may send; above it its agents are told to wait, and nobody else is."""

from __future__ import annotations

from collections.abc import Mapping

REPORTS_PER_SECOND = 5000.0
RATE_SETTING = "reports_per_second"
MOST = 1_000_000


class RateError(ValueError):
    """A rate that cannot be; the text says what was expected."""


def rate_of(settings: Mapping[str, object]) -> float:
    """What a project's settings say, else the default; each web process counts for itself."""
    wanted = settings.get(RATE_SETTING)
    return float(wanted) if isinstance(wanted, (int, float)) and wanted > 0 else REPORTS_PER_SECOND


def rate_checked(changes: Mapping[str, int]) -> int:
    """The new rate; raises RateError for what cannot be one."""
    for name, number in changes.items():
        if name != RATE_SETTING:
            raise RateError(f"{name} is not a rate, expected {RATE_SETTING}.")
        if not 1 <= number <= MOST:
            raise RateError(f"{name} is {number}, expected a whole number from 1 to {MOST:,}.")
    return changes[RATE_SETTING]
