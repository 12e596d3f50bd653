"""Bulk upsert: reads many rows by key, and merges many rows by replacing, adding, or keeping an
extreme.

PostgreSQL: one statement receives all rows as one array per column (`unnest`), in binary format.
SQLite: one statement per row on the raw connection is fastest there.

Invariants:
- Rows are inserted in key order, so that concurrent folds lock rows in the same order.
- Keys within a batch are distinct: an upsert must not change a row twice.
- Integers that add saturate at COUNTER_MAX instead of overflowing.
- NULL means not reported; an extreme is never replaced by NULL.

Reads use one lookup of the whole key per row. PostgreSQL reads a single partition per lookup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, Field, IntegerField, JSONField, Model

from dashboard.common.binary_cursor import open_binary_cursor
from dashboard.fleet.fold.counters import COUNTER_MAX

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """A table as the store writes it.

    Columns outside `key`, `added`, `largest` and `smallest` are replaced. Integers that add
    saturate at COUNTER_MAX.
    """

    model: type[Model]
    key: tuple[str, ...]
    columns: tuple[str, ...]
    added: frozenset[str] = frozenset()
    largest: frozenset[str] = frozenset()
    smallest: frozenset[str] = frozenset()
    _fields: dict[str, Field[Any, Any]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_column = {
            item.column: item
            for item in self.model._meta.concrete_fields
            if getattr(item, "column", None)
        }
        object.__setattr__(self, "_fields", {column: by_column[column] for column in self.columns})

    @property
    def name(self) -> str:
        """Name of the table in the database."""
        return self.model._meta.db_table

    def type_of(self, column: str) -> str:
        """Return the PostgreSQL type of a column."""
        return str(self._fields[column].db_type(connection))

    def fields(self) -> list[Field[Any, Any]]:
        """Return the fields in the order of the columns."""
        return list(self._fields.values())

    def _assignment(self, column: str, new: str) -> str:
        """Return the new value of a column in an existing row, as SQL. NULL never replaces an
        observed extreme."""
        mine = f'"{self.name}"."{column}"'
        greatest, least = (
            ("GREATEST", "LEAST") if connection.vendor == "postgresql" else ("MAX", "MIN")
        )
        if column in self.added:
            return (
                f"{least}({mine} + {new}, {COUNTER_MAX})"
                if isinstance(self._fields[column], IntegerField)
                else f"{mine} + {new}"
            )
        if column in self.largest:
            return f"{greatest}(COALESCE({mine}, {new}), COALESCE({new}, {mine}))"
        if column in self.smallest:
            return f"{least}(COALESCE({mine}, {new}), COALESCE({new}, {mine}))"
        return new

    def changes(self, new: Mapping[str, str]) -> str:
        """Return the assignments of an update; `new` holds the SQL of each column's new value."""
        return ", ".join(
            f'"{column}" = {self._assignment(column, new[column])}'
            for column in self.columns
            if column not in self.key
        )

    def insert(self, source: str) -> str:
        """Return the statement that inserts the rows of `source` and ignores existing keys."""
        names = ", ".join(f'"{column}"' for column in self.columns)
        return f'INSERT INTO "{self.name}" ({names}) {source} ON CONFLICT DO NOTHING'

    def upsert(self, source: str) -> str:
        """Return the statement that inserts the rows of `source` or merges each into the row with
        its key."""
        names = ", ".join(f'"{column}"' for column in self.columns)
        changes = self.changes({column: f'excluded."{column}"' for column in self.columns})
        key = ", ".join(f'"{column}"' for column in self.key)
        return (
            f'INSERT INTO "{self.name}" ({names}) {source} ON CONFLICT ({key}) DO UPDATE SET '
            f"{changes}"
        )


def rows_upsert(table: Table, rows: Sequence[Row], *, returning: tuple[str, ...] = ()) -> list[Row]:
    """Upsert rows with values in the order of the table's columns and with distinct keys.

    Return the columns `returning` of the written rows.
    """
    return _write(table, table.upsert, rows, returning)


def rows_insert(table: Table, rows: Sequence[Row], *, returning: tuple[str, ...] = ()) -> list[Row]:
    """Insert new rows; existing rows do not change and are not returned."""
    return _write(table, table.insert, rows, returning)


def _write(
    table: Table, statement: Callable[[str], str], rows: Sequence[Row], returning: tuple[str, ...]
) -> list[Row]:
    if not rows:
        return []
    places = [table.columns.index(column) for column in table.key]
    ordered = sorted(rows, key=lambda row: [row[place] for place in places])
    tail = (
        " RETURNING " + ", ".join(f'"{table.name}"."{column}"' for column in returning)
        if returning
        else ""
    )
    if connection.vendor == "postgresql":
        # One statement with one array per column transfers all rows at once.
        arrays, source = _unnest(table, ordered)
        with open_binary_cursor() as cursor:
            cursor.execute(statement(source) + tail, arrays)
            return cursor.fetchall() if tail else []
    return _write_each(
        table,
        statement(f"VALUES ({', '.join('?' for _ in table.columns)})") + tail,
        ordered,
        bool(tail),
    )


def _write_each(table: Table, statement: str, rows: Sequence[Row], tail: bool) -> list[Row]:
    """Write row by row, the fastest way on SQLite.

    The raw connection avoids Django's conversion of placeholders for each row.
    """
    forms = _list_converters(table)
    prepared = [_convert_row(row, forms) for row in rows]
    connection.ensure_connection()
    with connection.wrap_database_errors:
        if not tail:
            connection.connection.executemany(statement, prepared)
            return []
        execute = connection.connection.execute
        return [row for values in prepared for row in execute(statement, values).fetchall()]


def _list_converters(table: Table) -> list[tuple[int, Callable[[Any], Any]]]:
    """Return the converters of dates and JSON for SQLite, with their column numbers."""
    found: list[tuple[int, Callable[[Any], Any]]] = []
    for place, item in enumerate(table.fields()):
        if isinstance(item, DateTimeField):
            found.append((place, _format_time))
        elif isinstance(item, JSONField):
            found.append((place, partial(item.get_db_prep_value, connection=connection)))
    return found


def _format_time(moment: datetime | None) -> str | None:
    """Format a time as Django does, without Django's per-value lookup of type and backend."""
    return None if moment is None else str(moment.astimezone(UTC).replace(tzinfo=None))


def _convert_row(row: Row, forms: list[tuple[int, Callable[[Any], Any]]]) -> Row:
    """Convert dates and JSON of a row for SQLite."""
    if not forms:
        return row
    values = list(row)
    for place, kept in forms:
        values[place] = kept(values[place])
    return tuple(values)


def _unnest(table: Table, rows: Sequence[Row]) -> tuple[list[list[Any]], str]:
    """Return the rows as one array per column, and the SELECT that turns the arrays into rows."""
    arrays: list[list[Any]] = []
    selected = []
    for item, values in zip(table.fields(), zip(*rows, strict=True), strict=True):
        kind, column = table.type_of(item.column), f'"{item.column}"'
        if isinstance(item, JSONField):
            arrays.append([json.dumps(value) for value in values])
            selected.append(("%b::text[]", column, f"{column}::jsonb AS {column}"))
        else:
            arrays.append(list(values))
            selected.append((f"%b::{kind}[]", column, column))
    marks, names, columns = (", ".join(part) for part in zip(*selected, strict=True))
    return arrays, f"SELECT {columns} FROM unnest({marks}) AS given({names})"


def rows_read(table: Table, keys: Iterable[Row], *, constants: int = 2) -> list[Row]:
    """Return the rows with these keys, in no particular order.

    The first `constants` columns of the key have few distinct values, such as project and day.
    """
    wanted = sorted(keys)
    if not wanted:
        return []
    names = ", ".join(f'"{table.name}"."{column}"' for column in table.columns)
    if connection.vendor == "postgresql":
        return _load_rows(table, _read_arrays(table, names, wanted, constants))
    where = " AND ".join(f'"{column}" = ?' for column in table.key)
    # One lookup per key on the raw connection is fastest on SQLite.
    execute = connection.connection.execute
    statement = f'SELECT {names} FROM "{table.name}" WHERE {where}'
    return _load_rows(
        table, [row for key in wanted if (row := execute(statement, key).fetchone()) is not None]
    )


def _load_rows(table: Table, rows: list[Row]) -> list[Row]:
    """Parse the JSON of rows, and add the time zone to dates, which SQLite omits."""
    loaders: list[tuple[int, Callable[[Any], Any]]] = []
    for place, item in enumerate(table.fields()):
        if isinstance(item, JSONField):
            loaders.append((place, json.loads))
        elif isinstance(item, DateTimeField) and connection.vendor == "sqlite":
            loaders.append((place, lambda naive: naive.replace(tzinfo=UTC)))
    if not loaders:
        return rows
    found = [list(row) for row in rows]
    for row in found:
        for place, load in loaders:
            if row[place] is not None:
                row[place] = load(row[place])
    return [tuple(row) for row in found]


def _read_arrays(table: Table, names: str, wanted: list[Row], constants: int) -> list[Row]:
    """Read each row by one lookup of the whole key.

    Project and day are constants, so that the planner reads a single partition. OFFSET 0 keeps the
    lookups: without statistics of a new day, the planner would scan the whole day instead.
    """
    found: list[Row] = []
    first, rest = table.key[:constants], table.key[constants:]
    columns = ", ".join(f'"{column}"' for column in rest)
    marks = ", ".join(f"%b::{table.type_of(column)}[]" for column in rest)
    same = " AND ".join(f'"{table.name}"."{column}" = given."{column}"' for column in rest)
    groups: dict[Row, list[Row]] = {}
    for key in wanted:
        groups.setdefault(key[:constants], []).append(key[constants:])
    with open_binary_cursor() as cursor:
        for values, keys in groups.items():
            constant = " AND ".join(
                f'"{table.name}"."{column}" = {int(value)}'
                for column, value in zip(first, values, strict=True)
            )
            one = f'SELECT {names} FROM "{table.name}" WHERE {constant} AND {same} OFFSET 0'
            cursor.execute(
                f"SELECT found.* FROM unnest({marks}) AS given({columns}) CROSS JOIN "
                f"LATERAL ({one}) AS found",
                [list(column) for column in zip(*keys, strict=True)],
            )
            found.extend(cursor.fetchall())
    return found


def rows_update(table: Table, rows: Sequence[Row]) -> None:
    """Update existing rows as an upsert would, found by the table's single key column."""
    if not rows:
        return
    (key,) = table.key
    place = table.columns.index(key)
    ordered = sorted(rows, key=lambda row: row[place])
    if connection.vendor == "postgresql":
        arrays, source = _unnest(table, ordered)
        changes = table.changes({column: f'given."{column}"' for column in table.columns})
        with open_binary_cursor() as cursor:
            cursor.execute(
                f'UPDATE "{table.name}" SET {changes} FROM ({source}) AS given WHERE '
                f'"{table.name}"."{key}" = given."{key}"',
                arrays,
            )
        return
    marks = {column: f"?{number}" for number, column in enumerate(table.columns, start=1)}
    changes = table.changes(marks)
    forms = _list_converters(table)
    with connection.wrap_database_errors:
        connection.connection.executemany(
            f'UPDATE "{table.name}" SET {changes} WHERE "{key}" = {marks[key]}',
            [_convert_row(row, forms) for row in ordered],
        )
