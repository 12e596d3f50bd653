"""Counters of processes change to 64 bits, and back to 32, while another release writes: no error,
no lost count, no long lock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from dashboard.common import column_retype
from dashboard.fleet.partitions import partitions_make

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]
BEFORE, AFTER = "0019_instances_of_an_earlier_release_count", "0020_counters_of_64_bits"
TODAY, ROWS = 20_000, 30_000
TABLES = ("process_minute", "version_process_minute", "version_process_hour")
ADD = (
    "INSERT INTO process_minute (project_id, day, instance_id, minute, {columns}) SELECT * "
    "FROM unnest(%s::bigint[], %s::integer[],"
    " %s::bigint[], %s::bigint[], %s::integer[], %s::integer[]) AS given(project_id, day, "
    "instance_id, minute, windows, ooms), {zeros}"
    " ON CONFLICT (project_id, day, instance_id, minute) DO UPDATE SET windows = "
    "process_minute.windows + excluded.windows,"
    " ooms = process_minute.ooms + excluded.ooms"
)


@pytest.fixture(autouse=True)
def _postgresql() -> Iterator[None]:
    yield
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def migrate(name: str) -> None:
    MigrationExecutor(connection).migrate([("fleet", name)])


def types(table: str) -> set[str]:
    names = ("windows", "ooms", "recordings", "cache_hits", "compiles")
    with connection.cursor() as cursor:
        sql = (
            "SELECT data_type FROM information_schema.columns WHERE table_name = %s AND "
            "column_name = ANY(%s)"
        )
        cursor.execute(sql, [table, list(names)])
        return {row[0] for row in cursor.fetchall()}


def statement() -> str:
    """The statement of an earlier release, with values for the columns that have no default."""
    filled = ("windows", "ooms")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = "
            "'process_minute' AND is_nullable = 'NO'"
            " AND column_default IS NULL AND column_name NOT IN ('project_id', 'day', "
            "'instance_id', 'minute', 'windows', 'ooms')"
        )
        others = sorted(row[0] for row in cursor.fetchall())
    zeros = ", ".join("0" for _ in others)
    columns = ", ".join((*filled, *others))
    return ADD.format(
        columns=columns, zeros=f"(SELECT {zeros}) AS zeros" if others else "(SELECT) AS zeros"
    )


class Writer(Thread):
    """A process of the earlier release: adds one window to each of a few rows of three days,
    repeatedly."""

    def __init__(self, sql: str) -> None:
        super().__init__(daemon=True)
        self.sql, self.stopping = sql, Event()
        self.rounds, self.longest, self.error = 0, 0.0, ""

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                began = time.monotonic()
                minutes = range(5)
                days = [TODAY - 1, TODAY, TODAY + 1, TODAY, TODAY + 9]
                at = [day * 1440 + minute for day, minute in zip(days, minutes, strict=True)]
                with connection.cursor() as cursor:
                    cursor.execute(self.sql, [[1] * 5, days, [1] * 5, at, [1] * 5, [2] * 5])
                self.longest = max(self.longest, time.monotonic() - began)
                self.rounds += 1
                time.sleep(0.002)
        except Exception as error:  # noqa: BLE001  # the test asks for it
            self.error = repr(error)
        finally:
            connections.close_all()


@contextmanager
def writing(sql: str) -> Iterator[Writer]:
    writer = Writer(sql)
    writer.start()
    try:
        yield writer
    finally:
        writer.stopping.set()
        writer.join()


def fill() -> None:
    """Rows of an earlier day, more than one batch copies."""
    partitions_make(days=[TODAY - 1, TODAY])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(quote_ident(column_name), ', '), count(*) FROM "
            "information_schema.columns"
            " WHERE table_name = 'process_minute'"
            " AND is_nullable = 'NO' AND column_name NOT IN ('project_id', 'day', "
            "'instance_id', 'minute')"
        )
        names, count = cursor.fetchone()
        cursor.execute(
            f"INSERT INTO process_minute (project_id, day, instance_id, minute, {names})"
            f" SELECT 1, {TODAY - 1}, 7 + n, {(TODAY - 1) * 1440}, "
            f"{', '.join(['3'] * count)} FROM generate_series(1, {ROWS}) AS n"
        )


def sums() -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(windows), sum(ooms) FROM process_minute")
        windows, ooms = cursor.fetchone()
    return int(windows), int(ooms)


def test_both_migrations_lose_nothing_and_block_writers_only_briefly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(column_retype, "INITIAL_BATCH_PAGES", 50)
    migrate(BEFORE)
    assert {kind for table in TABLES for kind in types(table)} == {"integer"}
    fill()
    sql, rounds = statement(), 0
    for name, kind in ((AFTER, "bigint"), (BEFORE, "integer"), (AFTER, "bigint")):
        with writing(sql) as writer:
            time.sleep(0.2)
            migrate(name)
            time.sleep(0.2)
        assert writer.error == "" and writer.rounds > 10
        rounds += writer.rounds
        assert sums() == (3 * ROWS + 5 * rounds, 3 * ROWS + 10 * rounds)
        assert {kind_ for table in TABLES for kind_ in types(table)} == {kind}
        print(f"{name}: {writer.rounds} rounds, the longest {writer.longest * 1000:.0f} ms")
        assert writer.longest < 1.0


def test_a_migration_waits_for_a_long_reader_and_other_writers_continue() -> None:
    migrate(BEFORE)
    sql = statement()
    reading, seconds = Event(), 1.5

    def read() -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT count(*) FROM process_minute")
            reading.set()
            time.sleep(seconds)
            cursor.execute("COMMIT")
        connections.close_all()

    reader = Thread(target=read)
    reader.start()
    reading.wait()
    began = time.monotonic()
    with writing(sql) as writer:
        migrate(AFTER)
        took = time.monotonic() - began
    reader.join()
    assert took > seconds and types("process_minute") == {"bigint"}
    assert writer.error == "" and writer.longest < seconds / 2, writer.longest


def test_an_interrupted_migration_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(BEFORE)
    fill()
    monkeypatch.setattr(column_retype, "_end_statements", lambda *_: ["SELECT 1 / 0"])
    with pytest.raises(Exception, match="division by zero"):
        migrate(AFTER)
    monkeypatch.undo()
    migrate(AFTER)
    assert types("process_minute") == {"bigint"} and sums() == (3 * ROWS, 3 * ROWS)


def test_values_beyond_32_bits_become_the_largest_value_on_the_way_back() -> None:
    partitions_make(days=[TODAY])
    with connection.cursor() as cursor:
        sql = statement().replace("integer[], %s::integer[])", "bigint[], %s::bigint[])")
        cursor.execute(sql, [[1], [TODAY], [1], [5], [1 << 40], [7]])
    migrate(BEFORE)
    assert sums() == (2**31 - 1, 7)
