"""Limit usage: existing entities, and the number that counts towards a project's limits.

One query each, needed only for new entities.
"""

from __future__ import annotations

from collections.abc import Collection

from dashboard.fleet.fold.keys import (
    OTHER,
    OTHER_INSTANCE_PREFIX,
    EnvironmentKey,
    FindingKey,
    InstanceKey,
    SeriesKey,
    StratumKey,
    VersionKey,
)
from dashboard.fleet.models import Deployment, Finding, Instance, ModelVersion, Series
from dashboard.fleet.writers.bulk_upsert import Table, rows_read
from dashboard.fleet.writers.dimension_ids import to_datetime

_INSTANCES = Table(Instance, ("project_id", "instance_id"), ("project_id", "instance_id"))
ENVIRONMENT_DAYS, VERSION_DAYS, SERIES_DAYS, INSTANCE_MINUTES = 30, 30, 7, 60
"""Time for which an entity counts after its last report. A report may arrive up to 7 days late."""


def find_existing_environments(keys: Collection[EnvironmentKey]) -> set[EnvironmentKey]:
    """Return the environments with a deployment."""
    rows = Deployment.objects.filter(
        project_id__in={key.project for key in keys},
        environment__in={key.environment for key in keys},
    )
    return {
        EnvironmentKey(*row) for row in rows.values_list("project_id", "environment").distinct()
    } & set(keys)


def count_used_environments(project: int, now: float) -> int:
    """Return the number of environments with reports in the last 30 days."""
    rows = Deployment.objects.filter(
        project_id=project, last_minute__gte=int(now // 60) - ENVIRONMENT_DAYS * 1440
    )
    return rows.exclude(environment=OTHER).values("environment").distinct().count()


def find_existing_versions(keys: Collection[VersionKey]) -> set[VersionKey]:
    """Return the versions that have a row."""
    rows = ModelVersion.objects.filter(
        project_id__in={key.project for key in keys}, name__in={key.version for key in keys}
    )
    return {
        VersionKey(*row) for row in rows.values_list("project_id", "model__name", "name")
    } & set(keys)


def count_used_versions(project: int, now: float) -> int:
    """Return the number of versions with reports in the last 30 days."""
    rows = ModelVersion.objects.filter(
        project_id=project, last_seen_at__gte=to_datetime(now - VERSION_DAYS * 86400)
    )
    return rows.exclude(name=OTHER).count()


def find_existing_instances(keys: Collection[InstanceKey]) -> set[InstanceKey]:
    """Return the instances that have a row."""
    return {InstanceKey(*row) for row in rows_read(_INSTANCES, keys, constants=1)}


def count_used_instances(project: int, now: float) -> int:
    """Return the number of instances that reported or appeared in the last hour."""
    rows = Instance.objects.filter(
        project_id=project, live_minute__gte=int(now // 60) - INSTANCE_MINUTES
    )
    return rows.exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX).count()


def find_existing_series(keys: Collection[SeriesKey]) -> set[SeriesKey]:
    """Return the series that have a row."""
    found: set[SeriesKey] = set()
    rows = Series.objects.filter(
        project_id__in={key.version.project for key in keys},
        version__name__in={key.version.version for key in keys},
        region__in={key.region for key in keys},
    )
    columns = (
        "environment",
        "region",
        "bucket",
        "outermost",
        "version__model__name",
        "version__name",
    )
    strata = ("stratum__gpu", "stratum__mode", "stratum__runtime", "stratum__world_size")
    for (
        project,
        environment,
        region,
        bucket,
        outermost,
        model,
        version,
        *stratum,
    ) in rows.values_list("project_id", *columns, *strata):
        place = (region, bucket, outermost)
        found.add(
            SeriesKey(
                VersionKey(project, model, version),
                environment,
                StratumKey(project, *stratum),
                *place,
            )
        )
    return found & set(keys)


def count_used_series(project: int, now: float) -> int:
    """Return the number of series with calls in the last seven days."""
    rows = Series.objects.filter(
        project_id=project, last_minute__gte=int(now // 60) - SERIES_DAYS * 1440
    )
    return rows.exclude(region=OTHER, bucket=OTHER).count()


def find_existing_findings(keys: Collection[FindingKey]) -> set[FindingKey]:
    """Return the findings that have a row."""
    rows = Finding.objects.filter(
        project_id__in={key.project for key in keys},
        fingerprint__in={key.fingerprint for key in keys},
    )
    return {
        FindingKey(*row)
        for row in rows.values_list("project_id", "model__name", "kind", "fingerprint")
    } & set(keys)


def count_used_findings(project: int, now: float) -> int:
    """Return the number of findings that appeared today (UTC)."""
    return (
        Finding.objects.filter(project_id=project, made_day=int(now // 86400))
        .exclude(fingerprint=OTHER)
        .count()
    )
