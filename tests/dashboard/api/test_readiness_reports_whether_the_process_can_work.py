"""/healthz answers while the process lives; /readyz reports each dependency, with status 503 if a
required one fails."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from compilewatch.wire.messages import Request
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from dashboard.api import readiness
from dashboard.common import clock, health
from dashboard.common.heartbeat import heartbeat_write, record_fold_end
from dashboard.common.models import Heartbeat
from dashboard.ingest.models import InboxRow

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_cached_checks() -> None:
    health._migrated.clear()


@pytest.fixture
def worker() -> None:
    """A worker that folds."""
    record_fold_end()
    heartbeat_write(name="celery@here")


def checks(client: Client, status: int, address: str = "/readyz") -> dict[str, Any]:
    answer = client.get(address)
    assert answer.status_code == status
    assert answer.has_header("Retry-After") == (status == 503)
    for check in answer.json()["checks"].values():
        assert check["sentence"] and check.keys() == {"ok", "value", "limit", "unit", "sentence"}
    return {
        "status": answer.json()["status"],
        **{name: check["ok"] for name, check in answer.json()["checks"].items()},
    }


ALL_WELL = {
    "status": "ready",
    "committer": True,
    "database": True,
    "migrations": True,
    "inbox": True,
    "judge": True,
    "workers": True,
}


def test_ready_requests_can_be_repeated(client: Client, worker: None) -> None:
    for _ in range(2):
        assert checks(client, 200) == checks(client, 200, "/readyz?line") == ALL_WELL
    assert client.get("/healthz").json() == {"cw": 1, "status": "ok"}


def test_not_ready_while_a_migration_is_missing(client: Client, worker: None) -> None:
    recorder = MigrationRecorder(connection)
    [newest] = MigrationLoader(connection).graph.leaf_nodes("ingest")
    recorder.record_unapplied(*newest)
    try:
        assert checks(client, 503) == ALL_WELL | {"status": "not ready", "migrations": False}
    finally:
        recorder.record_applied(*newest)
    assert checks(client, 200) == ALL_WELL


def test_a_stalled_pipeline_is_reported_and_reports_are_still_accepted(
    client: Client,
    worker: None,
    store_reports: Callable[..., object],
    make_request: Callable[..., Request],
) -> None:
    store_reports(make_request(instance=1))
    assert checks(client, 200) == ALL_WELL
    InboxRow.objects.update(received_at=clock.now() - timedelta(seconds=90))
    Heartbeat.objects.update(folded_at=clock.now() - timedelta(seconds=90))
    found = ALL_WELL | {"status": "degraded", "inbox": False, "workers": False}
    assert checks(client, 200) == checks(client, 503, "/readyz?line") == found
    assert client.get("/readyz").json()["checks"]["inbox"]["value"] >= 90


@pytest.mark.parametrize("gone", [True, False], ids=["it went", "there never was one"])
def test_a_missing_worker_is_reported(client: Client, worker: None, gone: bool) -> None:
    if gone:
        Heartbeat.objects.update(seen_at=clock.now() - timedelta(seconds=45))
    else:
        Heartbeat.objects.update(kind="beat")
    assert checks(client, 200) == ALL_WELL | {"status": "degraded", "workers": False}


NOTHING = {
    "status": "not ready",
    "committer": True,
    "database": False,
    "migrations": False,
    "inbox": False,
    "judge": False,
    "workers": False,
}


def test_not_ready_but_alive_while_the_database_is_away(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise OperationalError("no route")

    monkeypatch.setitem(readiness.CHECKS, "database", away)
    assert checks(client, 503) == NOTHING
    assert client.get("/healthz").status_code == 200


def test_a_database_that_hangs_blocks_one_thread_and_no_request(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = [], threading.Event()

    def hangs() -> health.Check:
        asked.append(1)
        answers.wait(60)
        return health.database_check()

    monkeypatch.setitem(readiness.CHECKS, "database", hangs)
    monkeypatch.setattr(readiness, "CHECK_TIMEOUT_S", 0.05)
    try:
        assert [checks(client, 503) for _ in range(3)] == [NOTHING] * 3
        assert len(asked) == 1
    finally:
        answers.set()
        assert readiness._current_run is not None
        readiness._current_run._thread.join(60)


def test_heartbeats_of_yesterday_are_deleted(worker: None) -> None:
    Heartbeat.objects.update(seen_at=clock.now() - timedelta(hours=25))
    heartbeat_write(name="celery@new")
    assert [beat.name for beat in health.list_heartbeats()] == ["celery@new"]
