"""Drops what is older than its project keeps it: whole days of all projects at once, and the rest
in slices that hold no lock for long."""

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
"""Which setting of a project says how long a table's rows are kept."""

RUN_BUDGET_S = 120.0
"""A run ends about then; the next one goes on where it stopped."""

QUICK_SLICE_S, SLOW_SLICE_S = 0.01, 0.03
"""Seconds: a slice that took less is followed by a larger one, after one that took more the next is
smaller."""
FIRST_SLICE_ROWS, MIN_SLICE_ROWS, MAX_SLICE_ROWS = 200, 20, 5000


@dataclass
class RetentionResult:
    """What a run dropped, the longest time in seconds that one slice held its locks, and whether
    there is more."""

    partitions: int = 0
    rows: int = 0
    longest_hold: float = 0.0
    unfinished: bool = False


def find_first_kept_day(*, today: int, days: int) -> int:
    """The oldest day that is kept whole."""
    return today - days


def find_first_kept_minute(*, project: Project, now: float) -> int:
    """The first minute of versions that is certainly there; before it there are hours."""
    return (
        find_first_kept_day(
            today=int(now // 86400), days=read_retention(project.settings).version_minutes
        )
        * 1440
    )


def find_first_kept_instance_minute(*, project: Project, now: float) -> int:
    """The first minute of single instances that is certainly there."""
    return (
        find_first_kept_day(
            today=int(now // 86400), days=read_retention(project.settings).instance_minutes
        )
        * 1440
    )


def retention_run(*, seconds: float = RUN_BUDGET_S) -> RetentionResult:
    """Drops everything that is too old, for about so long."""
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
            # A project that is gone leaves rows behind, which no foreign key removes.
            days = getattr(kept.get(project_id, Retention()), setting)
            before = find_first_kept_day(today=today, days=days)
            _delete_in_slices(partial(_rows_delete, table, project_id, before), dropped, stop)
    for project_id, retention in kept.items():
        for old in _list_unreferenced(
            project_id, find_first_kept_day(today=today, days=retention.version_hours)
        ):
            _delete_in_slices(partial(_objects_delete, old), dropped, stop)
    for counts in (Intake, Refusal):  # of all projects, and of nobody known
        hours = counts._default_manager.filter(
            hour__lt=24 * find_first_kept_day(today=today, days=most.version_hours)
        )
        _delete_in_slices(partial(_hour_delete, hours), dropped, stop)
    dropped.unfinished = time.monotonic() >= stop
    return dropped


def _delete_in_slices(delete: Callable[[int], int], dropped: RetentionResult, stop: float) -> None:
    """Deletes a slice at a time until none is left. Between two slices whoever waits for the write
    lock gets it."""
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
        if alone:  # one writer at a time: the others wait for as long as a slice takes
            size = (
                min(size * 2, MAX_SLICE_ROWS)
                if held < QUICK_SLICE_S
                else max(size // 2, MIN_SLICE_ROWS)
                if held > SLOW_SLICE_S
                else size
            )


def _rows_delete(table: str, project_id: int, before: int, most: int) -> int:
    """Deletes at most so many rows of days before this one, found by the beginning of the table's
    key."""
    old = "WHERE project_id = %s AND day < %s"
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                f'DELETE FROM "{table}" WHERE rowid IN (SELECT rowid FROM "{table}" {old} '
                "LIMIT %s)",
                [project_id, before, most],
            )
            return int(cursor.rowcount)
        # Where a row lies is known within one partition only, so that a slice comes from one of
        # them.
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
    """Deletes at most so many, with what points at them."""
    ids = list(old.order_by("pk").values_list("pk", flat=True)[:most])
    if ids:
        old.model._default_manager.filter(pk__in=ids).delete()
    return len(ids)


def _hour_delete(old: QuerySet[Model], _most: int) -> int:
    """Deletes the oldest hour of them."""
    oldest = old.order_by("hour").values_list("hour", flat=True).first()
    return 0 if oldest is None else old.filter(hour=oldest).delete()[0]


def _list_unreferenced(project_id: int, first_day: int) -> Iterator[QuerySet[Model]]:
    """What nothing that is kept refers to any more: instances with their cold starts, series, and
    what the endpoint knew of a sender."""
    yield Instance.objects.filter(project_id=project_id, last_minute__lt=first_day * 1440)
    yield Series.objects.filter(project_id=project_id, last_minute__lt=first_day * 1440)
    since = clock.at_minute(first_day * 1440) - timedelta(days=1)
    yield DeploymentMark.objects.filter(
        project_id=project_id, at__lt=clock.at_minute(first_day * 1440)
    )
    yield Sender.objects.filter(project_id=project_id, last_seen_at__lt=since)


def _list_projects(table: str) -> list[int]:
    """The projects that have rows, each found by one look into the key."""
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
