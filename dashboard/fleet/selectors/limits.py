"""Limit overflows: limits that a project reached recently, with counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.common import clock
from dashboard.fleet.models import LimitReached
from dashboard.fleet.models.limits import COUNTER

SHOWN_FOR_S = 86400.0
"""Seconds to show a limit after its last overflow."""

DAYS = 7


@dataclass(frozen=True)
class LimitOverflow:
    """Overflows of one kind of limit: today (UTC), and in the seven days including today."""

    kind: str
    today: int
    week: int
    example: str
    last_at: datetime


def list_reached_limits(*, project_id: int, now: float) -> list[LimitReached]:
    """Return the newest row of each kind of name within a day."""
    rows = (
        LimitReached.objects.exclude(kind=COUNTER)
        .filter(project_id=project_id, last_at__gte=clock.at(now - SHOWN_FOR_S))
        .order_by("kind", "day")
    )
    return list({row.kind: row for row in rows}.values())


def count_limit_overflows(*, project_id: int, now: float) -> list[LimitOverflow]:
    """Return the overflows of seven days by kind, including saturated counters."""
    today = int(now // 86400)
    found: dict[str, list[LimitReached]] = {}
    for row in LimitReached.objects.filter(project_id=project_id, day__gt=today - DAYS).order_by(
        "kind", "day"
    ):
        found.setdefault(row.kind, []).append(row)
    return [
        LimitOverflow(
            kind=kind,
            today=sum(row.count for row in rows if row.day == today),
            week=sum(row.count for row in rows),
            example=rows[-1].example,
            last_at=rows[-1].last_at,
        )
        for kind, rows in found.items()
    ]
