"""Data of the 28-day trend: daily calls, starts, deployments and ROLL BACK alerts of both
periods."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from django.db.models import Count, Q

from dashboard.alerts.models import Alert, AlertOutcome
from dashboard.common import clock
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
    """Seven queries, independent of the length of the history."""
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
    before, after = (
        _read_period_counts(model, environment, start) for start in (first, today - PERIOD_DAYS)
    )
    return PeriodData(model, environment, calls, before, after)


def _read_period_counts(model: WatchedModel, environment: str, first: int) -> PeriodCounts:
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
    started = Q(started_minute__gte=first * 1440, started_minute__lt=(first + PERIOD_DAYS) * 1440)
    deployed = Deployment.objects.filter(started, model=model, environment=environment).aggregate(
        n=Count("pk")
    )
    starts = ColdStart.objects.filter(
        project_id=model.project_id,
        version__model=model,
        instance__environment=environment,
        started_at__gte=since,
        started_at__lt=until,
        total__isnull=False,
    )
    newest = starts.order_by("-started_at").values_list("total", flat=True)[:MAX_STARTS]
    totals = [total for total in newest if total is not None]
    return PeriodCounts(
        deployed["n"], told.count(), len(totals), median(totals) if totals else None
    )
