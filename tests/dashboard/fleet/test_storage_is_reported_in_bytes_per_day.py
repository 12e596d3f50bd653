"""`manage.py storage` prints the size of each table, and the bytes per day of an instance and of a
version."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.table_sizes import read_table_sizes, sum_bytes_a_day

pytestmark = pytest.mark.django_db


def test_a_day_is_estimated_from_the_observed_minutes(
    store_reports: Callable[..., Any], make_request: Callable[..., Any]
) -> None:
    for instance in range(3):
        store_reports(make_request(minutes=20, instance=instance))
    fold_all()
    tables = {table.name: table for table in read_table_sizes()}
    assert (tables["region_minute"].rows, tables["region_minute"].minutes) == (60, 60)
    assert (tables["version_minute"].rows, tables["version_minute"].minutes) == (20, 20)
    assert tables["version_hour"].minutes in (60, 120)
    for table in ("region_minute", "version_minute"):
        assert tables[table].bytes_a_day == tables[table].bytes / tables[table].minutes * 1440
    both = [
        tables[name].bytes_a_day or 0
        for name in ("region_minute", "process_minute", "compile_event")
    ]
    assert sum_bytes_a_day(list(tables.values()), "instance") == pytest.approx(sum(both))
    out = StringIO()
    call_command("storage", stdout=out)
    young = (
        "KiB, extrapolated from 60 minutes, too high until a whole day is stored, because new "
        "tables are mostly empty"
    )
    assert re.search(
        rf"^per day and instance: [\d,]+ {young} \(goal: at most 1,024 KiB\)$",
        out.getvalue(),
        re.MULTILINE,
    )


def test_a_whole_day_is_reported_without_a_caveat(
    store_reports: Callable[..., Any], make_request: Callable[..., Any]
) -> None:
    for instance in range(6):
        store_reports(make_request(minutes=240, instance=instance))
    fold_all()
    out = StringIO()
    call_command("storage", stdout=out)
    assert re.search(
        r"^per day and instance: [\d,]+ KiB, extrapolated from 1,440 minutes \(goal",
        out.getvalue(),
        re.MULTILINE,
    )


def test_the_command_prints_the_estimate() -> None:
    out = StringIO()
    call_command("storage", stdout=out)
    assert re.search(r"^the whole database +[\d,]+ +[\d,]+$", out.getvalue(), re.MULTILINE)
    assert "per day and instance: unknown: no data yet (goal: at most 1,024 KiB)" in out.getvalue()
    assert "per day and version: unknown: no data yet (goal: at most 4,096 KiB)" in out.getvalue()
