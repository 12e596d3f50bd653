"""/healthz answers while the process lives; /readyz only while the database answers and is migrated."""

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from dashboard.common import health

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    health._migrated.clear()


def test_ready_again_and_again(client: Client) -> None:
    for _ in range(2):
        assert client.get("/readyz").json() == {"cw": 1, "status": "ready"}
    assert client.get("/healthz").json() == {"cw": 1, "status": "ok"}


def test_not_ready_while_a_migration_is_missing(client: Client) -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("ingest", "0001_initial")
    try:
        answer = client.get("/readyz")
        assert answer.status_code == 503 and answer.json()["code"] == "not_migrated"
    finally:
        recorder.record_applied("ingest", "0001_initial")
    assert client.get("/readyz").status_code == 200


def test_not_ready_while_the_database_is_away_but_alive(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> int:
        raise OperationalError("no route")

    monkeypatch.setattr(health, "_migrations_waiting", away)
    answer = client.get("/readyz")
    assert answer.status_code == 503 and answer.json()["code"] == "busy" and answer["Retry-After"]
    assert client.get("/healthz").status_code == 200
