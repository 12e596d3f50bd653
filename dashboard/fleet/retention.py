"""Retention: deletes expired rows.

Whole days that expired for all projects are dropped as partitions. Other rows are deleted in slices
that hold their locks briefly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from django.db import connection
from django.db.models import Model, QuerySet

from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import (
    CompileEvent,
    DeploymentMark,
    Instance,
    ProcessMinute,
    RegionMinute,
    Series,
    VersionHour,
    VersionMinute,
    VersionProcessHour,
    VersionProcessMinute,
)
from dashboard.fleet.partitions import PARTITIONED_TABLES, partitions_drop
from dashboard.ingest.models import Intake, Refusal, Sender
from dashboard.projects.models import Project
from dashboard.projects.retention import Retention, longest_retention, read_retention

RETENTION_SETTING_BY_MODEL: dict[type[Model], str] = {
    RegionMinute: "instance_minutes",
    ProcessMinute: "instance_minutes",
    VersionMinute: "version_minutes",
    VersionProcessMinute: "version_minutes",
    CompileEvent: "compile_events",
    VersionHour: "version_hours",
    VersionProcessHour: "version_hours",
}
"""Retention setting of each table."""

RUN_BUDGET_S = 120.0
"""Approximate duration of a run in seconds; the next run continues."""

QUICK_SLICE_S, SLOW_SLICE_S = 0.01, 0.03
"""Target duration of a slice in seconds: faster slices grow, slower slices shrink."""
FIRST_SLICE_ROWS, MIN_SLICE_ROWS, MAX_SLICE_ROWS = 200, 20, 5000


@dataclass
class RetentionResult:
    """Result of a run: dropped partitions and rows, longest lock time of a slice (s), and whether
    rows remain."""

    partitions: int = 0
    rows: int = 0
    longest_hold: float = 0.0
    unfinished: bool = False


def find_first_kept_day(*, today: int, days: int) -> int:
    """Return the oldest day that is retained completely."""
    return today - days


def find_first_kept_minute(*, project: Project, now: float) -> int:
    """Return the first minute that version tables certainly retain; older data exists per hour."""
    return (
        find_first_kept_day(
            today=int(now // 86400), days=read_retention(project.settings).version_minutes
        )
        * 1440
    )


def find_first_kept_instance_minute(*, project: Project, now: float) -> int:
    """Return the first minute that instance tables certainly retain."""
    return (
        find_first_kept_day(
            today=int(now // 86400), days=read_retention(project.settings).instance_minutes
        )
        * 1440
    )


def retention_run(*, seconds: float = RUN_BUDGET_S) -> RetentionResult:
    """Delete expired rows, stopping after about `seconds`."""
    today, dropped, stop = int(clock.unix() // 86400), RetentionResult(), time.monotonic() + seconds
    kept = {
        project.pk: read_retention(project.settings) for project in Project.objects.only("settings")
    }
    most = longest_retention(list(kept.values()))
    for model, setting in RETENTION_SETTING_BY_MODEL.items():
        table = model._meta.db_table
        if table in PARTITIONED_TABLES:
            dropped.partitions += partitions_drop(
                table=table, before=find_first_kept_day(today=today, days=getattr(most, setting))
            )
        for project_id in _list_projects(table):
            # Rows of a deleted project remain, because these tables have no foreign key.
            days = getattr(kept.get(project_id, Retention()), setting)
            before = find_first_kept_day(today=today, days=days)
            _delete_in_slices(partial(_rows_delete, table, project_id, before), dropped, stop)
    for project_id, retention in kept.items():
        for old in _list_unreferenced(
            project_id, find_first_kept_day(today=today, days=retention.version_hours)
        ):
            _delete_in_slices(partial(_objects_delete, old), dropped, stop)
    for counts in (Intake, Refusal):  # rows of all projects, and of unknown senders
        hours = counts._default_manager.filter(
            hour__lt=24 * find_first_kept_day(today=today, days=most.version_hours)
        )
        _delete_in_slices(partial(_hour_delete, hours), dropped, stop)
    dropped.unfinished = time.monotonic() >= stop
    return dropped


def _delete_in_slices(delete: Callable[[int], int], dropped: RetentionResult, stop: float) -> None:
    """Delete slice by slice until no row is left; other writers get the lock between two slices."""
    alone = connection.vendor == "sqlite"
    size = FIRST_SLICE_ROWS if alone else MAX_SLICE_ROWS
    while time.monotonic() < stop:
        with write_transaction():
            began = time.monotonic()
            count = delete(size)
        held = time.monotonic() - began
        dropped.rows += count
        dropped.longest_hold = max(dropped.longest_hold, held)
        if not count:
            return
        if alone:  # SQLite has one writer, so others wait during a slice
            size = (
                min(size * 2, MAX_SLICE_ROWS)
                if held < QUICK_SLICE_S
                else max(size // 2, MIN_SLICE_ROWS)
                if held > SLOW_SLICE_S
                else size
            )


def _rows_delete(table: str, project_id: int, before: int, most: int) -> int:
    """Delete up to `most` rows before a day, found by the first columns of the key."""
    old = "WHERE project_id = %s AND day < %s"
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                f'DELETE FROM "{table}" WHERE rowid IN (SELECT rowid FROM "{table}" {old} '
                "LIMIT %s)",
                [project_id, before, most],
            )
            return int(cursor.rowcount)
        # A ctid is unique within one partition only, so each slice uses a single partition.
        cursor.execute(
            f'SELECT tableoid::regclass::text FROM "{table}" {old} LIMIT 1', [project_id, before]
        )
        found = cursor.fetchone()
        if found is None:
            return 0
        [part] = found
        cursor.execute(
            f"DELETE FROM {part} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {part} {old} LIMIT %s))",
            [project_id, before, most],
        )
        return int(cursor.rowcount)


def _objects_delete(old: QuerySet[Model], most: int) -> int:
    """Delete up to `most` objects, with the rows that refer to them."""
    ids = list(old.order_by("pk").values_list("pk", flat=True)[:most])
    if ids:
        old.model._default_manager.filter(pk__in=ids).delete()
    return len(ids)


def _hour_delete(old: QuerySet[Model], _most: int) -> int:
    """Delete the rows of the oldest hour."""
    oldest = old.order_by("hour").values_list("hour", flat=True).first()
    return 0 if oldest is None else old.filter(hour=oldest).delete()[0]


def _list_unreferenced(project_id: int, first_day: int) -> Iterator[QuerySet[Model]]:
    """Return queries of unreferenced rows: instances with their cold starts, series, deployment
    marks and senders."""
    yield Instance.objects.filter(project_id=project_id, last_minute__lt=first_day * 1440)
    yield Series.objects.filter(project_id=project_id, last_minute__lt=first_day * 1440)
    since = clock.at_minute(first_day * 1440) - timedelta(days=1)
    yield DeploymentMark.objects.filter(
        project_id=project_id, at__lt=clock.at_minute(first_day * 1440)
    )
    yield Sender.objects.filter(project_id=project_id, last_seen_at__lt=since)


def _list_projects(table: str) -> list[int]:
    """Return the projects with rows, by one index lookup per project."""
    found: list[int] = []
    with connection.cursor() as cursor:
        while True:
            cursor.execute(
                f'SELECT MIN(project_id) FROM "{table}" WHERE project_id > %s',
                [found[-1] if found else 0],
            )
            [project_id] = cursor.fetchone()
            if project_id is None:
                return found
            found.append(project_id)
