"""Fleet page: live versions with speed, compiled share and starts; a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.db.models import Max, QuerySet, Sum

from dashboard.common.raw_queries import fetch_rows, fetch_rows_together
from dashboard.fleet.models import Deployment, Instance, VersionProcessHour, VersionProcessMinute
from dashboard.fleet.selectors.instances.recent_instances import list_recent_instances
from dashboard.fleet.selectors.versions.fleet_calls import (
    add_calls,
    add_recent,
    filter_series,
    filter_slots,
    query_call_bins,
    query_call_totals,
    query_recent_calls,
    query_recent_counts,
)
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange, FleetData, VersionData
from dashboard.fleet.selectors.versions.fleet_deployments import read_models_and_deployments
from dashboard.projects.models import Project


def read_fleet(*, project: Project, window: BinnedRange, environment: str = "") -> FleetData:
    """Read the fleet of a project in three queries."""
    facts = read_fleet_frame(project=project, window=window, environment=environment)
    series = filter_series(project.pk, window, environment)
    calls, recent, processes = fetch_rows_together(
        query_call_bins(series, project.pk, window),
        query_recent_calls(series, project.pk, window.end),
        _processes(project.pk, window, environment),
    )
    regions = add_calls(facts.versions, calls, facts.model_of)
    add_recent(facts.versions, recent, regions, facts.model_of)
    _add_processes(facts.versions, processes)
    return facts


def read_fleet_frame(*, project: Project, window: BinnedRange, environment: str = "") -> FleetData:
    """Read models, deployments and instances, without calls; two queries."""
    models, deployed = read_models_and_deployments(project=project, since=window.start)
    inside = [
        one for one in deployed if one.ended_minute is None or one.last_minute >= window.start
    ]
    versions: dict[int, VersionData] = defaultdict(VersionData)
    instances = list_recent_instances(project_id=project.pk, environment=environment)
    for instance in instances:
        if instance.cold_start is not None:
            versions[instance.version_id].cold_starts.append(instance.cold_start)
    return FleetData(
        models,
        [one for one in inside if environment in ("", one.environment)],
        versions,
        instances,
        sorted({one.environment for one in deployed}),
        {one.version_id: one.model_id for one in deployed},
    )


def add_version_values(
    facts: FleetData,
    *,
    project_id: int,
    window: BinnedRange,
    environment: str,
    version_ids: Collection[int],
    also: QuerySet[Any, Any],
) -> list[tuple[Any, ...]]:
    """Add the values of some versions in the range, without latencies; one query, which also
    returns the rows of `also`."""
    series = _of_versions(project_id, window, environment, version_ids)
    calls, counts, processes, others = fetch_rows_together(
        query_call_totals(series, project_id, window),
        query_recent_counts(series, project_id, window.end),
        _processes(project_id, window, environment).filter(version_id__in=version_ids),
        also,
    )
    regions = add_calls(facts.versions, calls, facts.model_of)
    for version, region, count in counts:
        if regions.get(version) == region:
            facts.versions[version].recent_calls += count
    _add_processes(facts.versions, processes)
    return others


def add_recent_latencies(
    facts: FleetData,
    *,
    project_id: int,
    window: BinnedRange,
    environment: str,
    version_ids: Collection[int],
) -> None:
    """Add the latencies of the last minutes of some versions, whose other values are known; one
    query, or none without versions."""
    if not version_ids:
        return
    series = _of_versions(project_id, window, environment, version_ids)
    rows = fetch_rows(query_recent_calls(series, project_id, window.end))
    regions = {version: facts.versions[version].region for version in version_ids}
    add_recent(facts.versions, rows, regions, facts.model_of, counted=True)


def _of_versions(
    project_id: int, window: BinnedRange, environment: str, version_ids: Collection[int]
) -> dict[str, Any]:
    series = filter_series(project_id, window, environment)
    return series | {"series__version_id__in": version_ids}


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
