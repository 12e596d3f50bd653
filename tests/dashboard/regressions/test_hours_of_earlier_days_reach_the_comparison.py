"""Hourly rows of the days before a deployment are read for a version that follows its baseline: those
of each series, in the environment of the deployment, without the hours since."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.demo.simulated_fleet import build_fleet, build_instances
from dashboard.fleet.models import Deployment, Series, VersionHour
from dashboard.fleet.selectors.judge_inputs.day_hours import read_day_hours
from dashboard.projects.selectors import for_project
from dashboard.regressions.comparison_cache import clear_comparisons, get_comparison
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.settings import PRODUCTION
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db

BEFORE, AFTER, DAYS = 200, 30, 16
CHANGE = NOW_MINUTE - AFTER
Sent = Callable[..., None]


def roll_out(send: Sent) -> Deployment:
    """One pod of the old version until the change, one of the new version since."""
    pods = {}
    for pod in build_instances(build_fleet(judged_minutes=AFTER)[:1], start_minute=NOW_MINUTE):
        pods.setdefault(pod.identity.version, pod)
    old, new = (pods[name] for name in sorted(pods))
    old.first_minute, new.first_minute = CHANGE - BEFORE, CHANGE
    send(old, last=BEFORE)
    send(new)
    return Deployment.objects.get(version__name="2026.11.3")


def add_hours(deployment: Deployment, environment: str = "production") -> list[int]:
    """Days that differ by 10% in turn, for each series of the old version."""
    series = Series.objects.filter(version__name="2026.11.2", outermost=True)
    series.update(environment=environment)
    last = deployment.started_minute // 60
    VersionHour.objects.bulk_create(
        VersionHour(
            project_id=deployment.project_id,
            day=hour // 24,
            series_id=id,
            hour=hour,
            calls=1000,
            compiled=1000,
            latency_count=1000,
            latency_sum=10.0,
            p50=0.010 * (1.1 if hour // 24 % 2 else 1.0),
            p99=0.020,
        )
        for id in series.values_list("id", flat=True)
        for hour in range(last - DAYS * 24, last - 24)
    )
    return list(series.values_list("id", flat=True))


def test_each_series_has_its_hours(time_is: Clock, send: Sent) -> None:
    deployment = roll_out(send)
    ids = add_hours(deployment)
    rows = read_day_hours(deployment=deployment, days=DAYS)
    start = deployment.started_minute
    assert {row.unit for row in rows} == {str(id) for id in ids}
    assert all(
        row.minute % 60 == 0 and start - DAYS * 1440 - 60 < row.minute < start for row in rows
    )
    known = for_project(VersionHour, deployment.project_id).filter(hour__lt=start // 60)
    assert len(rows) == known.count() >= len(ids) * (DAYS - 1) * 24
    assert read_day_hours(deployment=deployment, days=0) == []


def test_another_environment_has_no_hours_here(time_is: Clock, send: Sent) -> None:
    deployment = roll_out(send)
    add_hours(deployment, environment="staging")
    assert read_day_hours(deployment=deployment, days=DAYS) == []


def test_days_that_differ_widen_the_comparison(time_is: Clock, send: Sent) -> None:
    clear_comparisons()
    deployment = roll_out(send)
    add_hours(deployment)
    baseline = Deployment.objects.get(version__name="2026.11.2")
    comparison = get_comparison(
        deployment=deployment, baseline=baseline, now_minute=NOW_MINUTE, settings=PRODUCTION
    )
    levels = [
        series
        for region in comparison.regions.values()
        for series, _ in region.entries
        if isinstance(series, RatioSeries) and series.metric.name == "p50"
    ]
    assert levels and all(one.days and one.days.variance > 0.05**2 for one in levels)
    clear_comparisons()
