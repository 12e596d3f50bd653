"""Fleet page: live versions with speed, compiled share and starts; a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Max, QuerySet, Sum

from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.models import Deployment, Instance, VersionProcessHour, VersionProcessMinute
from dashboard.fleet.selectors.instances.recent_instances import list_recent_instances
from dashboard.fleet.selectors.versions.fleet_calls import (
    add_calls,
    add_recent,
    filter_series,
    filter_slots,
    query_call_bins,
    query_recent_calls,
)
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange, FleetData, VersionData
from dashboard.fleet.selectors.versions.fleet_deployments import read_models_and_deployments
from dashboard.projects.models import Project


def read_fleet(*, project: Project, window: BinnedRange, environment: str = "") -> FleetData:
    """Read the fleet of a project in three queries."""
    models, deployed = read_models_and_deployments(project=project, since=window.start)
    inside = [
        one for one in deployed if one.ended_minute is None or one.last_minute >= window.start
    ]
    deployments = [one for one in inside if environment in ("", one.environment)]
    versions: dict[int, VersionData] = defaultdict(VersionData)
    series = filter_series(project.pk, window, environment)
    calls, recent, processes = fetch_rows_together(
        query_call_bins(series, project.pk, window),
        query_recent_calls(series, project.pk, window.end),
        _processes(project.pk, window, environment),
    )
    of_model = {one.version_id: one.model_id for one in deployed}
    regions = add_calls(versions, calls, of_model)
    add_recent(versions, recent, regions, of_model)
    _add_processes(versions, processes)
    instances = list_recent_instances(project_id=project.pk, environment=environment)
    for instance in instances:
        if instance.cold_start is not None:
            versions[instance.version_id].cold_starts.append(instance.cold_start)
    return FleetData(
        models, deployments, versions, instances, sorted({one.environment for one in deployed})
    )


def list_environments(*, project_id: int) -> list[str]:
    """Return all environments with a deployment, past or present."""
    return list(
        Deployment.objects.filter(project_id=project_id)
        .order_by("environment")
        .values_list("environment", flat=True)
        .distinct()
    )


def read_last_report_at(*, project_id: int) -> datetime | None:
    """Return the time of the newest folded report of any instance."""
    newest: datetime | None = Instance.objects.filter(project_id=project_id).aggregate(
        at=Max("last_seen_at")
    )["at"]
    return newest


def _processes(project_id: int, window: BinnedRange, environment: str) -> QuerySet[Any, Any]:
    """Return the query of processes in the range: seconds with and without a cache hit, and highest
    memory."""
    table: type[VersionProcessMinute] | type[VersionProcessHour] = (
        VersionProcessHour if window.hourly else VersionProcessMinute
    )
    unit, step = ("hour", 60) if window.hourly else ("minute", 1)
    rows = filter_slots(table.objects.filter(project_id=project_id), unit, step, window)
    if environment:
        rows = rows.filter(environment=environment)
    columns = (
        "version_id",
        Sum("hit_seconds"),
        Sum("miss_seconds"),
        Max("gpu_peak"),
        Max("host_rss"),
    )
    sums: QuerySet[Any, Any] = rows.values("version_id").order_by().values_list(*columns)
    return sums


def _add_processes(versions: dict[int, VersionData], rows: Iterable[tuple[Any, ...]]) -> None:
    for version, hit, miss, gpu, host in rows:
        facts = versions[version]
        facts.hit_seconds, facts.miss_seconds, facts.gpu_peak, facts.host_rss = hit, miss, gpu, host
