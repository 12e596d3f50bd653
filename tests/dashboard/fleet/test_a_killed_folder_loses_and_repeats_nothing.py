"""kill -9 at every crash point of a fold, and several folders at once: the totals stay exact."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from compilewatch.wire.messages import Request
from django.db import connection

from dashboard.fleet.models import ProcessMinute
from dashboard.ingest.models import FoldAttempt, InboxRow, PoisonReport
from tests.dashboard.fleet.folder import folder_run, folder_start
from tests.dashboard.fleet.totals import assert_all_counted

MakeRequest = Callable[..., Request]
Store = Callable[..., object]

POINTS = ("claimed", "upserted", "before_commit", "committed")
pytestmark = pytest.mark.django_db(transaction=True)


def assert_nothing_waits() -> None:
    assert not InboxRow.objects.exists()
    assert not FoldAttempt.objects.exists()
    assert not PoisonReport.objects.exists()


@pytest.mark.parametrize(
    ("point", "time"), [(point, 1) for point in POINTS] + [(point, 3) for point in POINTS]
)
def test_killed_at_a_point_and_run_again_counts_once(
    point: str, time: int, make_request: MakeRequest, store_reports: Store
) -> None:
    requests = [
        make_request(version=version, instance=n, minutes=30) for n, version in enumerate("1122")
    ]
    store_reports(*requests)
    assert folder_run(crash=f"{point}:{time}", batch=17) == -9
    assert folder_run(batch=17) == 0
    assert_all_counted(requests)
    assert_nothing_waits()


def test_killed_again_and_again_counts_once(
    make_request: MakeRequest, store_reports: Store
) -> None:
    requests = [make_request(instance=n, minutes=20) for n in range(3)]
    store_reports(*requests)
    points = itertools.cycle(["upserted:2", "committed:1", "before_commit:2"])
    ends = [folder_run(crash=next(points), batch=9) for _ in range(6)]
    assert -9 in ends
    assert folder_run(batch=9) == 0
    assert_all_counted(requests)
    assert_nothing_waits()


def test_a_report_that_kills_its_worker_three_times_is_quarantined(
    make_request: MakeRequest, store_reports: Store
) -> None:
    request = make_request(minutes=1)
    store_reports(request)
    assert [folder_run(crash="upserted:1") for _ in range(3)] == [-9, -9, -9]
    assert folder_run(crash="upserted:1") == 0
    [poison] = PoisonReport.objects.all()
    assert "ended 3 times" in poison.error
    assert not InboxRow.objects.exists()


def test_several_folders_at_once_count_once(
    make_request: MakeRequest, store_reports: Store
) -> None:
    """On SQLite the second process waits for the file; on PostgreSQL the folders run in
    parallel."""
    requests = [
        make_request(model=f"model-{n % 5}", version=str(n % 3), instance=n, minutes=30)
        for n in range(15)
    ]
    store_reports(*requests)
    workers = [folder_start(batch=20) for _ in range(3 if connection.vendor == "postgresql" else 1)]
    folded = 0
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert worker.returncode == 0, err
        folded += int(out)
    assert folded == 15 * 30
    assert_all_counted(requests)
    assert sum(ProcessMinute.objects.values_list("windows", flat=True)) == 15 * 30
    assert_nothing_waits()
