"""Day partitions on PostgreSQL: tables are created partitioned, days are made ahead and dropped whole; SQLite has plain tables."""

from collections.abc import Collection

from django.db import connection
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel
from django.db.migrations.state import ProjectState

PARTITIONED = ("region_minute", "process_minute", "version_minute", "version_process_minute", "compile_event")
DAYS_BACK = 8
DAYS_AHEAD = 3


class CreatePartitionedModel(CreateModel):
    """CreateModel that adds PARTITION BY RANGE (day) on PostgreSQL."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        sql, params = schema_editor.table_sql(model)
        schema_editor.execute(sql + ' PARTITION BY RANGE ("day")', params or None)
        schema_editor.deferred_sql.extend(schema_editor._model_indexes_sql(model))  # type: ignore[attr-defined]


def partitions_ensure(*, today: int) -> int:
    """Makes the partitions of every day a report may still belong to, and some ahead; returns how many were made."""
    return partitions_make(days=range(today - DAYS_BACK, today + DAYS_AHEAD + 1))


def partitions_make(*, days: Collection[int]) -> int:
    """Makes the partitions of these days where they are missing; returns how many were made."""
    if connection.vendor != "postgresql" or not missing_of(days):
        return 0
    made = 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext('compilewatch partitions'))")
        try:
            for table, day in missing_of(days):
                cursor.execute(f'CREATE TABLE "{table}_{day}" PARTITION OF "{table}" FOR VALUES FROM ({day}) TO ({day + 1})')
                made += 1
        finally:
            cursor.execute("SELECT pg_advisory_unlock(hashtext('compilewatch partitions'))")
    return made


def missing_of(days: Collection[int]) -> list[tuple[str, int]]:
    """The tables and days that have no partition."""
    present = set(partition_names())
    return [(table, day) for table in PARTITIONED for day in days if f"{table}_{day}" not in present]


def partition_names() -> list[str]:
    """Names of all partitions that exist; PostgreSQL only."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid"
            " JOIN pg_class parent ON parent.oid = inhparent WHERE parent.relname = ANY(%s)",
            [list(PARTITIONED)],
        )
        return [row[0] for row in cursor.fetchall()]
