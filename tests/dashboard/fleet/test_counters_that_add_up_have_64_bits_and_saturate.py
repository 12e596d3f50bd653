"""Every counter that sums reported values has 64 bits, in the models and in the database; it
saturates at its largest value, and the Health page shows the saturation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.messages import Fact, Report, Request
from compilewatch.wire.sketch import Sketch
from django.apps import apps
from django.db import connection
from django.db.models import BigIntegerField, IntegerField, SmallIntegerField
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.fold.counters import COUNTER_MAX
from dashboard.fleet.fold.sketch_columns import build_sketch_columns
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import (
    Finding,
    LimitReached,
    ProcessMinute,
    RegionMinute,
    VersionHour,
    VersionProcessHour,
)
from dashboard.ingest.models import PoisonReport
from dashboard.projects.models import Project

pytestmark = pytest.mark.django_db
Make = Callable[..., Request]
Store = Callable[..., object]

SHORT = {
    "ingest_inbox": {"shard"},
    "ingest_fold_attempt": {"shard", "attempts"},
    "ingest_poison": {"shard"},
    "instance": {"rank", "world_size", "pid", "exit_code"},
    "stratum": {"world_size"},
    "compile_event": {"day", "number", "line", "entries", "entry_limit"},
    "finding": {"distinct", "made_day"},
    "limit_reached": {"day"},
    "region_minute": {"day"},
    "process_minute": {"day", "degraded_frames"},
    "version_minute": {"day"},
    "version_hour": {"day"},
    "version_process_minute": {"day", "degraded_frames"},
    "version_process_hour": {"day", "degraded_frames"},
    "learned_variance": {"minutes", "pairs", "prior_df"},
    "placebo_preview": {"done"},
    "settings_backtest": {"done", "evaluated"},
    "learned_warm_up": {"minutes", "processes", "versions"},
    "alert": {"number"},
    "alert_rule": {"repeat_minutes", "escalate_minutes"},
    "alert_delivery": {"attempts", "last_status"},
    "alert_delivery_attempt": {"status"},
}
"""Integers of less than 64 bits that do not sum reported values: days, line numbers and ranks,
levels with bounds in ingest, statuses, and numbers that rise by one for an action of the server (an
alert, an attempt, a healthy pair of versions)."""


def test_no_other_integer_has_less_than_64_bits() -> None:
    found: dict[str, set[str]] = {}
    for model in apps.get_models():
        if model.__module__.startswith("dashboard"):
            for field in model._meta.concrete_fields:
                if (
                    isinstance(field, (IntegerField, SmallIntegerField))
                    and not isinstance(field, BigIntegerField)
                    and not field.primary_key
                ):
                    found.setdefault(model._meta.db_table, set()).add(field.name)
    assert found == SHORT


@pytest.mark.postgresql_only
def test_the_database_has_the_types_of_the_models() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE "
            "data_type = 'bigint'"
        )
        wide = set(cursor.fetchall())
    for model in (ProcessMinute, VersionProcessHour, VersionHour, Finding):
        columns = [
            field.column
            for field in model._meta.concrete_fields
            if isinstance(field, BigIntegerField)
        ]
        assert {(model._meta.db_table, column) for column in columns if column} <= wide


def ooms(report: Report) -> None:
    """The largest count that one out-of-memory fact may report, four times: more than 32 bits."""
    report.facts = [
        Fact(kind="oom", at=report.window[1], data={"count": 10**9, "text": "out of memory"})
        for _ in range(4)
    ]


def test_values_beyond_32_bits_are_counted(make_request: Make, store_reports: Store) -> None:
    store_reports(make_request(minutes=3, change=ooms))
    fold_all()
    assert not PoisonReport.objects.exists()
    assert sum(ProcessMinute.objects.values_list("ooms", flat=True)) == 12 * 10**9
    assert Finding.objects.get().count == 12 * 10**9 and not LimitReached.objects.exists()


def largest(report: Report) -> None:
    """The largest number of calls in one report, all in one bin, and eager for 2,000 reasons."""
    [region] = report.regions
    count = 1 << 40
    region.calls = region.sampled = region.compiled = count
    region.eager_by = {f"cause {number}": count for number in range(2000)}
    region.latency = Sketch.of([0.01, 0.02])
    region.latency.bins = [one * (count // 2) for one in region.latency.bins]
    region.latency.count, region.latency.sum = count, 0.015 * count


def near_the_edge(**columns: int) -> None:
    """Sets every stored row close to the largest value, as years of hostile reports would."""
    RegionMinute.objects.update(**columns)
    VersionHour.objects.update(**columns)


def test_calls_saturate_and_the_health_page_shows_it(
    make_request: Make, store_reports: Store, signed_in: Client, project: Project
) -> None:
    store_reports(make_request(minutes=1, end=_now(), change=largest))
    fold_all()
    assert VersionHour.objects.get().unknown == COUNTER_MAX
    near_the_edge(calls=COUNTER_MAX - 5, errors=7)
    store_reports(make_request(minutes=1, end=_now(), first_seq=2, change=largest))
    fold_all()
    assert not PoisonReport.objects.exists()
    row = VersionHour.objects.get()
    assert (row.calls, row.unknown, row.errors) == (
        COUNTER_MAX,
        COUNTER_MAX,
        7,
    ) and row.latency_count == 1 << 41
    [noted] = LimitReached.objects.all()
    assert (noted.kind, noted.project_id, noted.example) == (
        "counter",
        project.pk,
        "calls of forward",
    )
    text = signed_in.get(f"/p/{project.slug}/health/").content.decode()
    assert (
        "A counter reached its maximum, 1,125,899,906,842,624" in text
        and "calls of forward" in text
    )
    assert "Limits reached" not in text and "counter:" not in text


def test_counters_of_processes_saturate_and_the_limit_is_recorded(
    make_request: Make, store_reports: Store
) -> None:
    store_reports(make_request(minutes=1, end=_now(), change=ooms))
    fold_all()
    for model in (ProcessMinute, VersionProcessHour):
        model.objects.update(ooms=COUNTER_MAX - 1)
    Finding.objects.update(count=COUNTER_MAX - 1)
    store_reports(make_request(minutes=1, end=_now(), first_seq=2, change=ooms))
    fold_all()
    assert not PoisonReport.objects.exists()
    assert {
        VersionProcessHour.objects.get().ooms,
        ProcessMinute.objects.get().ooms,
        Finding.objects.get().count,
    } == {COUNTER_MAX}
    assert LimitReached.objects.get().example == "ooms"


def test_a_saturated_sketch_keeps_its_quantiles_and_its_mean() -> None:
    values = [0.001 * number for number in range(1, 200)]
    full, small = Sketch.of(values), Sketch.of(values)
    scale = COUNTER_MAX // full.count
    full.bins, full.count, full.sum = (
        [one * scale for one in full.bins],
        full.count * scale,
        full.sum * scale,
    )
    many: Any = build_sketch_columns([full, full, full, small])
    three, one = many.merged([0, 0, 0, 1], 2).sketches()
    assert COUNTER_MAX // 2 < three.count <= COUNTER_MAX and one == small
    assert three.quantile(0.5) == pytest.approx(small.quantile(0.5), rel=0.01)
    assert three.sum / three.count == pytest.approx(small.sum / small.count, rel=0.01)


def _now() -> float:
    """A moment of today in the middle of a minute."""
    return clock.unix() // 60 * 60 - 30
