"""Migrations add columns while an earlier release writes: no writer waits behind a waiting
migration, and all rows count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest
from compilewatch.wire.messages import Request
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from tests.dashboard.requests import request_make

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE, AFTER = "0015_what_golden_batches_tell", "0018_processes_are_named"
READING_SECONDS = 1.5
Store = Callable[..., list[tuple[int, int]]]


def migrate(name: str) -> None:
    MigrationExecutor(connection).migrate([("fleet", name)])


def rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


@pytest.fixture
def earlier(store_reports: Store) -> Iterator[None]:
    """A database of the earlier release, with an instance that reported."""
    request: Request = request_make(end=clock.unix(), minutes=2, pid=77)
    store_reports(request)
    fold_all()
    migrate(BEFORE)
    yield
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def test_rows_of_an_earlier_release_count_from_their_first_minute(earlier: None) -> None:
    migrate(AFTER)
    assert rows("SELECT active_minute, pid FROM instance") == [(0, 77)]


def test_an_interrupted_migration_resumes(earlier: None) -> None:
    rows("ALTER TABLE instance ADD COLUMN label varchar(128) DEFAULT '' NOT NULL")
    migrate(AFTER)
    assert rows("SELECT label, pid FROM instance") == [("", 77)]


@pytest.mark.postgresql_only
@pytest.mark.usefixtures("earlier")
def test_no_writer_waits_behind_a_migration_that_waits_for_a_long_reader() -> None:
    reading, over, took = Event(), Event(), list[float]()

    def read() -> None:
        rows("BEGIN")
        rows("SELECT count(*) FROM instance")
        reading.set()
        time.sleep(READING_SECONDS)
        rows("COMMIT")
        connections.close_all()

    def write() -> None:
        while not over.wait(0.005):
            began = time.monotonic()
            rows("UPDATE instance SET last_seq = last_seq + 1")
            took.append(time.monotonic() - began)
        connections.close_all()

    threads = [Thread(target=read), Thread(target=write)]
    threads[0].start()
    reading.wait()
    threads[1].start()
    migrate(AFTER)
    over.set()
    for thread in threads:
        thread.join()
    assert len(took) > 10 and max(took) < READING_SECONDS / 2, max(took)
