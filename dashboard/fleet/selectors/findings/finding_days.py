"""Finding days: counts of findings per day that are new, gone or back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date

from django.db.models import Count, F
from django.db.models.functions import TruncDate

from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.models import FindingLife
from dashboard.fleet.selectors.findings.finding_list import FindingFilter, filter_findings

DAYS = 30
DAY_MINUTES = 1440
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@dataclass
class FindingDay:
    """One day, in days since 1970, UTC.

    `new` counts findings first seen on the day. `gone` and `back` count findings in this state
    since the day.
    """

    day: int
    new: int = 0
    gone: int = 0
    back: int = 0


def count_findings_by_day(*, project_id: int, wanted: FindingFilter) -> list[FindingDay]:
    """Return the last DAYS days including today, ignoring the state filter; one query."""
    today = clock.minute_of(clock.unix()) // DAY_MINUTES
    days = {day: FindingDay(day) for day in range(today - DAYS + 1, today + 1)}
    matching = filter_findings(project_id, wanted, but="state")
    since = clock.at_minute(min(days) * DAY_MINUTES)
    seen = matching.filter(first_seen_at__gte=since).annotate(
        on=TruncDate("first_seen_at", tzinfo=UTC)
    )
    lives = FindingLife.objects.filter(
        finding__in=matching.values("pk"),
        state__in=("gone", "back"),
        since_minute__gte=min(days) * DAY_MINUTES,
    )
    lives = lives.filter(environment=wanted.environment) if wanted.environment else lives
    first_seen, changed = fetch_rows_together(
        seen.values_list("on").annotate(n=Count("pk")).order_by(),
        lives.values_list("state", F("since_minute") / DAY_MINUTES)
        .annotate(n=Count("finding", distinct=True))
        .order_by(),
    )
    for on, count in first_seen:
        found = days.get(on.toordinal() - EPOCH_ORDINAL)
        if found:
            found.new += count
    for state, day, count in changed:
        found = days.get(int(day))
        if found:
            setattr(found, state, getattr(found, state) + count)
    return list(days.values())
