"""Sums of 64-bit counters are ints and means are floats on PostgreSQL and SQLite, in the ORM and in
SQL."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.db.models import Avg, Sum

from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows
from dashboard.ingest.models import Refusal
from dashboard.projects.models import Project

pytestmark = pytest.mark.django_db
LARGEST = 2**63 - 1


def refusals(project: Project, *counts: int) -> None:
    hour = int(clock.unix() // 3600)
    Refusal.objects.bulk_create(
        Refusal(project_id=project.pk, hour=hour - n, code="busy", count=count)
        for n, count in enumerate(counts)
    )


@pytest.mark.parametrize("counts", [(70,), (40, 30), (0,)])
def test_a_sum_is_an_int(project: Project, counts: tuple[int, ...]) -> None:
    refusals(project, *counts)
    total = Refusal.objects.aggregate(total=Sum("count"))["total"]
    assert type(total) is int and total == sum(counts)
    assert json.dumps(total) == str(sum(counts))


def test_a_mean_is_a_float(project: Project) -> None:
    refusals(project, 1, 2)
    mean = Refusal.objects.aggregate(mean=Avg("count"))["mean"]
    assert type(mean) is float and mean == 1.5


def test_rows_from_the_driver_have_the_same_types(project: Project) -> None:
    refusals(project, 40, 30)
    [(code, total, mean)] = fetch_rows(
        Refusal.objects.values("code")
        .annotate(Sum("count"), Avg("count"))
        .values_list("code", "count__sum", "count__avg")
    )
    assert (code, type(total), total, type(mean), mean) == ("busy", int, 70, float, 35.0)


def test_sql_returns_the_same(project: Project) -> None:
    refusals(project, 4, 5)
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(count) FROM ingest_refusal WHERE project_id = %s", [project.pk])
        [(total,)] = cursor.fetchall()
    assert type(total) is int and total == 9


@pytest.mark.postgresql_only
def test_a_sum_beyond_64_bits_is_exact(project: Project) -> None:
    refusals(project, LARGEST, LARGEST)
    assert Refusal.objects.aggregate(total=Sum("count"))["total"] == 2 * LARGEST
