"""Data of the 28-day trend: daily calls, starts, deployments and ROLL BACK alerts of both
periods."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import Any

from django.db.models import QuerySet

from dashboard.alerts.models import Alert, AlertOutcome
from dashboard.common import clock
from dashboard.common.raw_queries import Rows, fetch_rows_together
from dashboard.fleet.models import ColdStart, Deployment, WatchedModel
from dashboard.fleet.selectors.versions.daily_calls import read_series_days
from dashboard.regressions.models import VerdictKind
from dashboard.ui.charts.period_comparison.compute import (
    PERIOD_DAYS,
    CallDay,
    CallGroup,
    PeriodComparison,
    compare_periods,
)
from dashboard.ui.charts.period_comparison.text import PeriodCounts

MAX_STARTS = 5000


@dataclass(frozen=True)
class PeriodData:
    """Data of the comparison; the periods are whole days in UTC."""

    model: WatchedModel
    environment: str
    calls: PeriodComparison
    before: PeriodCounts
    after: PeriodCounts


def read_period_data(*, model: WatchedModel, environment: str, today: int) -> PeriodData:
    """Two queries, independent of the length of the history, and one more for several series."""
    first = today - 2 * PERIOD_DAYS
    days = read_series_days(
        project_id=model.project_id,
        model_id=model.pk,
        environment=environment,
        first_day=first,
        last_day=today,
    )
    calls = compare_periods(
        (
            CallDay(CallGroup(row.gpu, row.world_size, row.region, row.bucket), *row[4:])
            for row in days
        ),
        today=today,
    )
    before, after = _read_period_counts(model, environment, (first, today - PERIOD_DAYS))
    return PeriodData(model, environment, calls, before, after)


def _read_period_counts(
    model: WatchedModel, environment: str, firsts: tuple[int, int]
) -> list[PeriodCounts]:
    """The counts of both periods, in one query."""
    queries = [
        query for first in firsts for query in _query_period_counts(model, environment, first)
    ]
    found = fetch_rows_together(*queries)
    return [
        PeriodCounts(len(deployed), len(alerted), len(starts), _median(starts))
        for deployed, alerted, starts in (found[:3], found[3:])
    ]


def _query_period_counts(
    model: WatchedModel, environment: str, first: int
) -> tuple[QuerySet[Any, Any], QuerySet[Any, Any], QuerySet[Any, Any]]:
    """Queries of the deployments, the alerts and the newest cold starts of a period."""
    since = clock.at_minute(first * 1440)
    until = since + timedelta(days=PERIOD_DAYS)
    alerts = Alert.objects.filter(
        project_id=model.project_id,
        deployment__model=model,
        deployment__environment=environment,
        worst=VerdictKind.ROLL_BACK,
    )
    told = alerts.filter(opened_at__gte=since, opened_at__lt=until).exclude(
        outcome=AlertOutcome.DISMISSED
    )
    deployed = Deployment.objects.filter(
        model=model,
        environment=environment,
        started_minute__gte=first * 1440,
        started_minute__lt=(first + PERIOD_DAYS) * 1440,
    )
    starts = ColdStart.objects.filter(
        project_id=model.project_id,
        version__model=model,
        instance__environment=environment,
        started_at__gte=since,
        started_at__lt=until,
        total__isnull=False,
    )
    return (
        deployed.values_list("pk"),
        told.values_list("pk"),
        starts.order_by("-started_at").values_list("total")[:MAX_STARTS],
    )


def _median(rows: Rows) -> float | None:
    return median(row[0] for row in rows) if rows else None
