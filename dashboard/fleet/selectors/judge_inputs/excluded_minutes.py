"""Excluded minutes: minutes in which an instance followed a command.

Minutes that were frozen or eager by request do not measure the version.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from compilewatch.wire.command import MAX_LIFETIME_SECONDS

from dashboard.common import clock
from dashboard.fleet.models import CommandReceipt, Deployment

LOOKBACK_MINUTES = 180
"""Minutes to read before the first requested one. A kill switch lasts an hour, and its effect ends
15 min after its last command."""
_RECEIPT_STATES = ("accepted", "applied", "ended")

Receipt = tuple[str, datetime]


def read_excluded_minutes(
    *, deployment: Deployment, baseline: Deployment | None, from_minute: int, to_minute: int
) -> dict[str, set[int]]:
    """Return the minutes by instance in which a command was in force; one query.

    Minutes range from `from_minute` to `to_minute`, exclusive.
    """
    rows = CommandReceipt.objects.filter(
        project_id=deployment.project_id,
        instance__version_id__in=[side.version_id for side in (deployment, baseline) if side],
        instance__environment=deployment.environment,
        state__in=_RECEIPT_STATES,
        at__gte=clock.at_minute(from_minute - LOOKBACK_MINUTES),
    )
    told: dict[str, list[Receipt]] = {}
    for name, state, at in rows.order_by("at", "pk").values_list(
        "instance__instance_id", "state", "at"
    ):
        told.setdefault(name, []).append((state, at))
    found = {
        name: list_minutes_in_force(rows, from_minute, to_minute) for name, rows in told.items()
    }
    return {name: minutes for name, minutes in found.items() if minutes}


def list_minutes_in_force(told: Iterable[Receipt], from_minute: int, to_minute: int) -> set[int]:
    """Return the minutes between application and end of a command, including partial minutes.

    Without an end, a command ends after its maximum lifetime.
    """
    minutes: set[int] = set()
    since: float | None = None
    until = 0.0

    def close(end: float) -> None:
        if since is not None:
            first, last = (
                max(from_minute, clock.minute_of(since)),
                min(to_minute - 1, clock.minute_of(end)),
            )
            minutes.update(range(first, last + 1))

    for state, moment in told:
        at = moment.timestamp()
        if since is not None and at > until:
            close(until)
            since = None
        if state == "ended":
            close(at)
            since = None
        elif state == "applied" and since is None:
            since, until = at, at + MAX_LIFETIME_SECONDS
        elif since is not None:
            until = at + MAX_LIFETIME_SECONDS
    close(until)
    return minutes
