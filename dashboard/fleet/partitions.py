"""Partitions: day partitions on PostgreSQL, created ahead and dropped whole. SQLite has plain
tables.

Rows of a day without a partition enter the default partition, and move when the partition is
created.
"""

import logging
from collections.abc import Collection

from django.db import OperationalError, ProgrammingError, connection, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel
from django.db.migrations.state import ProjectState
from psycopg.errors import DuplicateTable

from dashboard.common.write_lock import acquire_advisory_lock

logger = logging.getLogger(__name__)

PARTITIONED_TABLES = (
    "region_minute",
    "process_minute",
    "version_minute",
    "version_process_minute",
    "compile_event",
)
DAYS_BACK = 8
DAYS_AHEAD = 3
LOCK_TIMEOUT = "2s"
"""Maximum wait of an ALTER for the table's readers. All other queries of the table wait behind the
ALTER, so after this time it is retried with the next sweep."""


class CreatePartitionedModel(CreateModel):
    """Creates a model's table with PARTITION BY RANGE (day) on PostgreSQL."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        sql, params = schema_editor.table_sql(model)
        schema_editor.execute(sql + ' PARTITION BY RANGE ("day")', params or None)
        indexes = schema_editor._model_indexes_sql(model)  # type: ignore[attr-defined]
        schema_editor.deferred_sql.extend(indexes)


def partitions_ensure(*, today: int) -> int:
    """Create the partitions of all days that reports may contain, and of DAYS_AHEAD days; return
    their number."""
    return partitions_make(days=list_partition_days(today))


def list_partition_days(today: int) -> range:
    """Return the days that may receive rows."""
    return range(today - DAYS_BACK, today + DAYS_AHEAD + 1)


def partitions_make(*, days: Collection[int]) -> int:
    """Create missing partitions of these days and missing default partitions; return their
    number."""
    if connection.vendor != "postgresql" or not list_missing_partitions(days):
        return 0
    made = 0
    for table, day in list_missing_partitions(days):
        made += _make(table, day)
    return made


def partitions_drop(*, table: str, before: int) -> int:
    """Drop the table's partitions before a day; return their number.

    A partition in use is left for the next sweep.
    """
    if connection.vendor != "postgresql":
        return 0
    dropped = 0
    for day in sorted(day for day in list_existing_days(table) if day < before):
        dropped += _alter(f'DROP TABLE IF EXISTS "{table}_{day}"')
    return dropped


def list_existing_days(table: str) -> list[int]:
    """Return the days that have a partition. PostgreSQL only."""
    names = [
        name.removeprefix(f"{table}_")
        for name in list_partition_names()
        if name.startswith(f"{table}_")
    ]
    return [int(name) for name in names if name.isdecimal()]


def list_missing_partitions(days: Collection[int]) -> list[tuple[str, int | None]]:
    """Return the tables and days without a partition; None is the default partition, which comes
    first."""
    present = set(list_partition_names())
    defaults: list[tuple[str, int | None]] = [
        (table, None) for table in PARTITIONED_TABLES if f"{table}_default" not in present
    ]
    return defaults + [
        (table, day)
        for table in PARTITIONED_TABLES
        for day in days
        if f"{table}_{day}" not in present
    ]


def list_partition_names() -> list[str]:
    """Return the names of all partitions. PostgreSQL only."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid"
            " JOIN pg_class parent ON parent.oid = inhparent WHERE parent.relname = ANY(%s)",
            [list(PARTITIONED_TABLES)],
        )
        return [row[0] for row in cursor.fetchall()]


def _make(table: str, day: int | None) -> bool:
    if day is None:
        return _alter(
            f'CREATE TABLE IF NOT EXISTS "{table}_default" PARTITION OF "{table}" DEFAULT'
        )
    # Create the table first, then attach it. Creating the partition in place would wait for all
    # readers and writers of the parent table and block new ones.
    name = f"{table}_{day}"
    return _alter(
        f'CREATE TABLE "{name}" (LIKE "{table}" INCLUDING ALL)',
        f'WITH moved AS (DELETE FROM "{table}_default" WHERE day = {day} RETURNING *) '
        f'INSERT INTO "{name}" SELECT * FROM moved',
        f'ALTER TABLE "{table}" ATTACH PARTITION "{name}" FOR VALUES FROM ({day}) TO ({day + 1})',
    )


def _alter(*statements: str) -> bool:
    """Run the statements in one transaction, serialised with other changes of partitions.

    Return False if a lock was unavailable, or if the partition already exists.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            acquire_advisory_lock("partitions")
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            for statement in statements:
                cursor.execute(statement)
    except ProgrammingError as error:
        if not isinstance(error.__cause__, DuplicateTable):
            raise
        return False
    except OperationalError as error:
        logger.warning(
            "creating a partition is postponed to the next sweep: %s",
            str(error).strip().splitlines()[0],
        )
        return False
    return True
