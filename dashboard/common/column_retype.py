"""Online column retype: changes the type of columns while either release writes to the table.

The retype neither rewrites a large table nor holds a long lock. On PostgreSQL:

1. Each column gets a replacement column. A trigger keeps the replacement equal to the original.
2. Batches copy the stored rows, partition by partition. Batch size follows the batch duration.
3. When no row differs, the original column is dropped and the replacement takes its name.

Invariants: from step 1 on, every write sets both columns, so each row needs one copy at most. A
restart after a crash continues: it skips step 1 and copies only rows that differ. Writers wait for
the rows of one batch, or up to `LOCK_TIMEOUT_S` for each table lock (see `lock_retry`).

On SQLite every integer has 64 bits, so only Django's migration state changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from dashboard.common.lock_retry import retry_for_lock

INITIAL_BATCH_PAGES, MIN_BATCH_PAGES, MAX_BATCH_PAGES = 50, 4, 2000
"""Pages of 8 KiB per batch: of the first batch, and the bounds of every batch."""
BATCH_TARGET_S = 0.05
"""Target duration of a batch. Writers of its rows wait until it commits, so a slower batch halves
the size."""
MAX_VALUES = {"integer": 2**31 - 1, "bigint": 2**63 - 1}


def columns_retype(
    editor: BaseDatabaseSchemaEditor, table: str, columns: Sequence[str], kind: str
) -> None:
    """Gives the columns the type `kind`, a key of `MAX_VALUES`. Larger values become the maximum of
    the type."""
    if editor.connection.vendor != "postgresql":
        return
    wanted = [column for column in columns if _read_column_type(editor, table, column) != kind]
    if not wanted:
        return
    if _read_column_type(editor, table, _replacement_column(wanted[0])) is None:
        retry_for_lock(editor, _begin_statements(table, wanted, kind))
    while True:
        parts = _list_partitions(editor, table)
        copied = sum(_copy_rows(editor, part, wanted, kind) for part in parts)
        # New rows may move to a partition created in the meantime, so the loop ends only when there
        # is nothing left to copy.
        if not copied and _list_partitions(editor, table) == parts:
            break
    retry_for_lock(editor, _end_statements(table, wanted))


def columns_retyper(
    table: str, columns: Sequence[str], kind: str
) -> Callable[[Any, BaseDatabaseSchemaEditor], None]:
    """`columns_retype` as a function for RunPython."""
    return lambda apps, editor: columns_retype(editor, table, columns, kind)


def _replacement_column(column: str) -> str:
    return f"{column}_retyped"


def _value(source: str, kind: str) -> str:
    return f"LEAST({source}, {MAX_VALUES[kind]})::{kind}"


def _begin_statements(table: str, columns: Sequence[str], kind: str) -> list[str]:
    added = ", ".join(
        f'ADD COLUMN "{_replacement_column(column)}" {kind} NOT NULL DEFAULT 0'
        for column in columns
    )
    kept = " ".join(
        f'NEW."{_replacement_column(column)}" := {_value(f"NEW.{chr(34)}{column}{chr(34)}", kind)};'
        for column in columns
    )
    return [
        f'ALTER TABLE "{table}" {added}',
        f"CREATE OR REPLACE FUNCTION {table}_retype() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN {kept} RETURN NEW; END $$",
        f'CREATE TRIGGER {table}_retype BEFORE INSERT OR UPDATE ON "{table}" FOR EACH ROW '
        f"EXECUTE FUNCTION {table}_retype()",
    ]


def _end_statements(table: str, columns: Sequence[str]) -> list[str]:
    dropped = ", ".join(f'DROP COLUMN "{column}"' for column in columns)
    renamed = [
        f'ALTER TABLE "{table}" RENAME COLUMN "{_replacement_column(column)}" TO "{column}"'
        for column in columns
    ]
    return [
        f'DROP TRIGGER {table}_retype ON "{table}"',
        f"DROP FUNCTION {table}_retype()",
        f'ALTER TABLE "{table}" {dropped}',
        *renamed,
    ]


def _copy_rows(
    editor: BaseDatabaseSchemaEditor, part: str, columns: Sequence[str], kind: str
) -> int:
    """Copies the rows of one partition that differ, and returns their number. The trigger covers
    later writes."""
    given = ", ".join(
        f'"{_replacement_column(column)}" = {_value(f"{chr(34)}{column}{chr(34)}", kind)}'
        for column in columns
    )
    differs = " OR ".join(
        f'"{_replacement_column(column)}" <> {_value(f"{chr(34)}{column}{chr(34)}", kind)}'
        for column in columns
    )
    copied = 0
    with editor.connection.cursor() as cursor:
        cursor.execute(
            f"SELECT pg_relation_size('\"{part}\"') / current_setting('block_size')::int"
        )
        pages = int(cursor.fetchone()[0])
        page, size = 0, INITIAL_BATCH_PAGES
        while page < pages:
            began = time.monotonic()
            cursor.execute(
                f"UPDATE \"{part}\" SET {given} WHERE ctid >= '({page},0)' AND ctid < "
                f"'({page + size},0)' AND ({differs})"
            )
            page, copied, took = page + size, copied + cursor.rowcount, time.monotonic() - began
            if took > BATCH_TARGET_S:
                size = max(MIN_BATCH_PAGES, size // 2)
            elif took < BATCH_TARGET_S / 2:
                size = min(MAX_BATCH_PAGES, size * 2)
    return copied


def _read_column_type(editor: BaseDatabaseSchemaEditor, table: str, column: str) -> str | None:
    """The type name of PostgreSQL; None if the column does not exist."""
    with editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = "
            "to_regclass(%s) AND attname = %s AND NOT attisdropped",
            [f'"{table}"', column],
        )
        row = cursor.fetchone()
    return str(row[0]) if row else None


def _list_partitions(editor: BaseDatabaseSchemaEditor, table: str) -> list[str]:
    """The table's partitions, or the table itself if it has none."""
    with editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE oid IN (SELECT relid FROM "
            "pg_partition_tree(to_regclass(%s)) WHERE isleaf)"
            " OR (oid = to_regclass(%s) AND relkind = 'r') ORDER BY relname",
            [f'"{table}"', f'"{table}"'],
        )
        return [str(row[0]) for row in cursor.fetchall()]
