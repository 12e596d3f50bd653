"""Which limits a project reached of late."""

from __future__ import annotations

from dashboard.common import clock
from dashboard.fleet.models import LimitReached

SHOWN_FOR = 86400.0
"""Seconds after the last name there was no room for."""


def limits_reached(*, project_id: int, now: float) -> list[LimitReached]:
    """The newest row of each kind, within a day."""
    rows = LimitReached.objects.filter(project_id=project_id, last_at__gte=clock.at(now - SHOWN_FOR)).order_by("kind", "day")
    return list({row.kind: row for row in rows}.values())
