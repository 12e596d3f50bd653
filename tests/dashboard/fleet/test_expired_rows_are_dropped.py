"""Retention: minutes, hours and compilations are deleted after the days that their project keeps
them, as whole days on PostgreSQL, in slices where projects differ."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.messages import Compile, Report
from django.db import connection
from django.db.models import Model

from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import (
    ColdStart,
    Finding,
    Instance,
    ModelVersion,
    ProcessMinute,
    RegionMinute,
    Series,
    VersionHour,
    VersionMinute,
)
from dashboard.fleet.partitions import PARTITIONED_TABLES, list_existing_days
from dashboard.fleet.retention import RETENTION_SETTING_BY_MODEL, retention_run
from dashboard.ingest.models import Intake, Refusal, Sender
from dashboard.projects.models import Project
from dashboard.projects.retention import read_retention
from dashboard.projects.services import project_create, retention_set

pytestmark = pytest.mark.django_db
DAY_ONE = 20_000


class Clock:
    """Half past noon of a day."""

    day = DAY_ONE

    def unix(self) -> float:
        return self.day * 86400.0 + 45000.0


@pytest.fixture
def time_is(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    monkeypatch.setattr(clock, "unix", stopped.unix)
    return stopped


def compiled(report: Report) -> None:
    report.compiles = [
        Compile(
            at=report.window[1],
            id="0/0",
            frame="forward",
            kind="first",
            outcome="ok",
            seconds={"total": 1.0},
        )
    ]


def days(model: type[Model], project: Project) -> list[int]:
    return sorted(
        set(model._default_manager.filter(project_id=project.pk).values_list("day", flat=True))
    )


@pytest.fixture
def report(
    store_reports: Callable[..., Any], make_request: Callable[..., Any]
) -> Callable[..., None]:
    """`report(project)`: one minute of one instance with a compilation arrives now."""
    numbers = iter(range(1, 10_000))

    def send(project: Project, **wanted: Any) -> None:
        store_reports(
            make_request(first_seq=next(numbers), change=compiled, **wanted), project=project
        )
        fold_all()

    return send


def test_each_table_keeps_the_number_of_whole_days_that_the_project_sets(
    time_is: Clock, project: Project, report: Callable[..., None]
) -> None:
    retention_set(
        project=project,
        changes={"version_minutes": 10, "compile_events": 9, "version_hours": 35},
        actor_name="test",
    )
    for time_is.day in range(DAY_ONE, DAY_ONE + 41, 5):
        report(project)
    retention_run()
    last = time_is.day
    for model, setting in RETENTION_SETTING_BY_MODEL.items():
        kept = getattr(read_retention(project.settings), setting)
        assert days(model, project) == [
            day for day in range(DAY_ONE, last + 1, 5) if day >= last - kept
        ], model
    assert Finding.objects.count() == 0
    assert ModelVersion.objects.count() == 1


def test_projects_that_keep_for_different_times_share_a_table(
    time_is: Clock, project: Project, other_project: Project, report: Callable[..., None]
) -> None:
    retention_set(project=other_project, changes={"instance_minutes": 20}, actor_name="test")
    for time_is.day in range(DAY_ONE, DAY_ONE + 25, 4):
        report(project)
        report(other_project)
    dropped = retention_run()
    last = time_is.day
    assert days(RegionMinute, project) == days(ProcessMinute, project) == [last - 8, last - 4, last]
    assert (
        days(RegionMinute, other_project)
        == days(ProcessMinute, other_project)
        == list(range(last - 20, last + 1, 4))
    )
    if connection.vendor == "postgresql":
        assert min(list_existing_days("region_minute")) == last - 20
        assert dropped.partitions == 2
        assert dropped.rows == 2 * 3


def test_rows_of_a_deleted_project_expire_too(
    time_is: Clock, project: Project, report: Callable[..., None]
) -> None:
    report(project)
    number = project.pk
    project.delete()
    time_is.day += 9
    retention_run()
    assert not RegionMinute.objects.filter(project_id=number).exists()
    assert VersionMinute.objects.filter(project_id=number).exists()


def test_a_run_stops_in_time_and_the_next_one_continues(
    time_is: Clock, project: Project, report: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    report(project)
    time_is.day += 500
    assert retention_run(seconds=0.0).unfinished
    assert VersionHour.objects.exists()
    assert not retention_run().unfinished
    assert not VersionHour.objects.exists()


def test_rows_without_references_expire_with_the_hours(
    time_is: Clock, project: Project, report: Callable[..., None]
) -> None:
    report(project)
    time_is.day += 399
    report(project, version="2", instance=1)
    retention_run()
    assert Instance.objects.count() == Series.objects.count() == Sender.objects.count() == 2
    time_is.day += 3
    retention_run()
    assert [instance.version.name for instance in Instance.objects.all()] == ["2"]
    assert Series.objects.count() == Sender.objects.count() == ColdStart.objects.count() == 1
    assert ModelVersion.objects.count() == 2


def test_counts_of_the_endpoint_expire_with_the_hours(time_is: Clock, project: Project) -> None:
    kept = read_retention(project.settings).version_hours
    first = 24 * (DAY_ONE - kept)
    for hour in (first - 30, first - 1, first, 24 * DAY_ONE):
        Intake.objects.create(project_id=project.pk, hour=hour, reports=1, bytes=1)
        Refusal.objects.create(project_id=0, hour=hour, code="bad_key", count=1)
    retention_run()
    for counts in (Intake, Refusal):
        assert list(counts._default_manager.order_by("hour").values_list("hour", flat=True)) == [
            first,
            24 * DAY_ONE,
        ]


@pytest.mark.postgresql_only
def test_rows_of_a_day_without_a_partition_are_kept_and_move_into_it(
    time_is: Clock, project: Project, report: Callable[..., None]
) -> None:
    from dashboard.fleet.partitions import partitions_ensure

    report(project)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM region_minute")
        cursor.execute(
            "INSERT INTO region_minute SELECT (jsonb_populate_record(null::region_minute, "
            "to_jsonb(m) || jsonb_build_object"
            "('instance_id', 1, 'series_id', 1, 'day', %s, 'minute', %s, 'latency_count', 7))).*"
            " FROM (SELECT * FROM version_minute LIMIT 1) m",
            [DAY_ONE + 30, (DAY_ONE + 30) * 1440],
        )
        cursor.execute("SELECT count(*) FROM region_minute_default")
        assert cursor.fetchone() == (1,)
        time_is.day += 30
        assert partitions_ensure(today=time_is.day) > 0
        cursor.execute("SELECT count(*) FROM region_minute_default")
        assert cursor.fetchone() == (0,)
        cursor.execute(f"SELECT latency_count FROM region_minute_{DAY_ONE + 30}")
        assert cursor.fetchone() == (7,)


@pytest.mark.postgresql_only
def test_the_fold_creates_its_partitions_while_no_task_is_sent(
    time_is: Clock, project: Project, report: Callable[..., None]
) -> None:
    time_is.day += 100
    report(project)
    assert all(time_is.day in list_existing_days(table) for table in PARTITIONED_TABLES)


@pytest.mark.django_db(transaction=True)
def test_other_writers_get_the_lock_between_two_slices(
    time_is: Clock, project: Project, report: Callable[..., None]
) -> None:
    report(project)
    rows_copy(20_000)
    time_is.day += 9
    seen: list[int] = []

    def write() -> None:
        try:
            while not seen or seen[-1] > 0:
                with write_transaction():
                    seen.append(RegionMinute.objects.count())
        finally:
            connection.close()

    other = threading.Thread(target=write)
    with write_transaction():
        other.start()
    retention_set(project=project, changes={}, actor_name="test")
    _other_project_keeps_longer()
    assert retention_run().rows >= 20_000
    other.join(60)
    assert not RegionMinute.objects.exists()
    assert len(set(seen) - {0, 20_001}) >= 3


def _other_project_keeps_longer() -> None:
    """Prevents PostgreSQL from dropping whole days."""
    longer = project_create(name="Longer", slug="longer")
    retention_set(project=longer, changes={"instance_minutes": 30}, actor_name="test")


def rows_copy(count: int) -> None:
    """Copies the only minute of an instance this number of times, under other instances."""
    columns = [field.column for field in RegionMinute._meta.concrete_fields if field.column]
    wanted = ", ".join("n" if column == "instance_id" else column for column in columns)
    with write_transaction(), connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE copies(n) AS (SELECT 1000000 UNION ALL SELECT n + 1 FROM "
            f"copies WHERE n < {999_999 + count})"
            f" INSERT INTO region_minute ({', '.join(columns)}) SELECT {wanted} FROM "
            "region_minute, copies"
        )
