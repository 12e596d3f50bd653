"""Reads that bypass the Django model return the same values as the rows."""

from django.db.models import Sum

from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows
from dashboard.fleet.models import Deployment, Instance, Series, VersionMinute
from dashboard.fleet.selectors.instances.instance_states import (
    instance_state,
    list_missing_capabilities,
)
from dashboard.fleet.selectors.instances.recent_instances import (
    RecentInstance,
    list_recent_instances,
)
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange
from dashboard.fleet.selectors.versions.fleet_page import read_fleet
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_story import rolled_back


def test_a_recent_instance_has_the_values_of_its_row(project: Project) -> None:
    rolled_back(project)
    blind = Instance.objects.order_by("pk")[0]
    blind.capabilities, blind.ready_at = {"compiled_calls": ["no", "too old"]}, None
    blind.latched_eager = [{"frame": "forward", "cause": "limit", "at": 1}]
    blind.save()
    rows = {row.pk: row for row in Instance.objects.select_related("cold_start")}
    seen, now = list_recent_instances(project_id=project.pk), clock.now()
    assert seen
    for one in seen:
        row = rows[one.pk]
        fields = {
            name: getattr(row, name) for name in RecentInstance._fields if name != "cold_start"
        }
        start = getattr(row, "cold_start", None)
        assert one._asdict() == {**fields, "cold_start": start.total if start else None}
        assert (instance_state(one, now), list_missing_capabilities(one)) == (
            instance_state(row, now),
            list_missing_capabilities(row),
        )
    assert any(one.latched_eager for one in seen)


def test_plain_rows_equal_the_rows_of_the_query(project: Project) -> None:
    rolled_back(project)
    rows = VersionMinute.objects.filter(project_id=project.pk).order_by("series_id", "minute")
    asked = rows.values_list("minute", "latency", "calls", "p50", "series__region")
    assert fetch_rows(asked) == [tuple(row) for row in asked] != []
    assert fetch_rows(asked.filter(series_id__in=[])) == []


def test_rows_of_calls_join_their_series(project: Project) -> None:
    rolled_back(project)
    joined = (
        VersionMinute.objects.values_list("series__version_id")
        .annotate(n=Sum("calls"))
        .order_by("series__version_id")
    )
    versions = dict(Series.objects.values_list("pk", "version_id"))
    apart: dict[int, int] = {}
    for series, calls in VersionMinute.objects.values_list("series_id", "calls"):
        apart[versions[series]] = apart.get(versions[series], 0) + calls
    assert dict(joined) == apart


def test_an_environment_remains_listed_long_after_its_last_deployment(
    project: Project,
) -> None:
    made = rolled_back(project)
    now = clock.minute_of(clock.unix())
    old = {
        "project": project,
        "model": made.model,
        "version": made.versions["2026.10.9"],
        "environment": "staging",
    }
    Deployment.objects.create(
        **old, started_minute=now - 90_000, last_minute=now - 80_000, ended_minute=now - 80_000
    )
    window = BinnedRange(now - 60, now, 1)
    everywhere, staging = (
        read_fleet(project=project, window=window, environment=name) for name in ("", "staging")
    )
    assert everywhere.environments == staging.environments == ["production", "staging"]
    assert {one.environment for one in everywhere.deployments} == {"production"}
    assert staging.deployments == []
