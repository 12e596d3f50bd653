"""Rate limit: the quota of a project in reports per second and queued reports. Above the quota,
only the agents of that project have to wait."""

from __future__ import annotations

from collections.abc import Mapping

DEFAULT_REPORTS_PER_SECOND = 5000.0
RATE_SETTING = "reports_per_second"
DEFAULT_REPORTS_WAITING = 200_000
WAITING_SETTING = "reports_waiting"
MAX_QUOTA = {RATE_SETTING: 1_000_000, WAITING_SETTING: 100_000_000}


class QuotaError(ValueError):
    """An invalid quota; the text gives the expected value."""


def read_rate(settings: Mapping[str, object]) -> float:
    """Reports per second of a project, by its settings or the default. Each web process counts
    separately."""
    wanted = settings.get(RATE_SETTING)
    return (
        float(wanted)
        if isinstance(wanted, (int, float)) and wanted > 0
        else DEFAULT_REPORTS_PER_SECOND
    )


def read_waiting_limit(settings: Mapping[str, object]) -> int:
    """Maximum queued reports of a project, by its settings or the default."""
    wanted = settings.get(WAITING_SETTING)
    return (
        wanted
        if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted > 0
        else DEFAULT_REPORTS_WAITING
    )


def read_quota(settings: Mapping[str, object]) -> dict[str, float]:
    """Both quotas in force, by the names of their settings."""
    return {RATE_SETTING: read_rate(settings), WAITING_SETTING: read_waiting_limit(settings)}


def check_quota(changes: Mapping[str, int]) -> dict[str, int]:
    """Returns the validated numbers. Raises QuotaError."""
    for name, number in changes.items():
        if name not in MAX_QUOTA:
            raise QuotaError(
                f"{name} is not a quota, expected {RATE_SETTING} or {WAITING_SETTING}."
            )
        if not 1 <= number <= MAX_QUOTA[name]:
            raise QuotaError(
                f"{name} is {number}, expected a whole number from 1 to {MAX_QUOTA[name]:,}."
            )
    return dict(changes)
