"""Many rows at once, in key order: reading them by key, and upserts that replace, add, or keep the
larger value."""

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
    """A table as the store writes it; columns outside `key`, `added` and `largest` are replaced.
    Integers that add saturate at MOST."""

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
        """The table's name in the database."""
        return self.model._meta.db_table

    def type_of(self, column: str) -> str:
        """The column's type as PostgreSQL calls it."""
        return str(self._fields[column].db_type(connection))

    def fields(self) -> list[Field[Any, Any]]:
        """The fields in the order of the columns."""
        return list(self._fields.values())

    def _assignment(self, column: str, new: str) -> str:
        """What becomes of a column of a row that is there already. An absent value never wins over
        one that was seen."""
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
        """What an update sets, given where the new value of each column stands."""
        return ", ".join(
            f'"{column}" = {self._assignment(column, new[column])}'
            for column in self.columns
            if column not in self.key
        )

    def insert(self, source: str) -> str:
        """The statement that inserts what `source` yields, and leaves rows alone that are there
        already."""
        names = ", ".join(f'"{column}"' for column in self.columns)
        return f'INSERT INTO "{self.name}" ({names}) {source} ON CONFLICT DO NOTHING'

    def upsert(self, source: str) -> str:
        """The statement that inserts what `source` yields, or merges it into the row with the same
        key."""
        names = ", ".join(f'"{column}"' for column in self.columns)
        changes = self.changes({column: f'excluded."{column}"' for column in self.columns})
        key = ", ".join(f'"{column}"' for column in self.key)
        return (
            f'INSERT INTO "{self.name}" ({names}) {source} ON CONFLICT ({key}) DO UPDATE SET '
            f"{changes}"
        )


def rows_upsert(table: Table, rows: Sequence[Row], *, returning: tuple[str, ...] = ()) -> list[Row]:
    """Writes the rows, whose values are in the order of the table's columns and whose keys differ
    from each other."""
    return _write(table, table.upsert, rows, returning)


def rows_insert(table: Table, rows: Sequence[Row], *, returning: tuple[str, ...] = ()) -> list[Row]:
    """The same of rows that are new: what is there already stays as it is, and is not returned."""
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
        # One statement with one array a column: the database takes the rows in one piece.
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
    """Row by row, as SQLite is fastest; on the raw connection, for Django would write the marks of
    the statement anew for each."""
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
    """What turns dates and JSON into what SQLite keeps, by their places."""
    found: list[tuple[int, Callable[[Any], Any]]] = []
    for place, item in enumerate(table.fields()):
        if isinstance(item, DateTimeField):
            found.append((place, _format_time))
        elif isinstance(item, JSONField):
            found.append((place, partial(item.get_db_prep_value, connection=connection)))
    return found


def _format_time(moment: datetime | None) -> str | None:
    """The same text as Django's, which finds out anew for every moment what it is and how this
    database keeps it."""
    return None if moment is None else str(moment.astimezone(UTC).replace(tzinfo=None))


def _convert_row(row: Row, forms: list[tuple[int, Callable[[Any], Any]]]) -> Row:
    """The row with dates and JSON as SQLite keeps them."""
    if not forms:
        return row
    values = list(row)
    for place, kept in forms:
        values[place] = kept(values[place])
    return tuple(values)


def _unnest(table: Table, rows: Sequence[Row]) -> tuple[list[list[Any]], str]:
    """The rows as one array a column, and the SELECT that makes rows of them again."""
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
    """The rows with these keys, in no order; so many columns of the key have few different values,
    such as project and day."""
    wanted = sorted(keys)
    if not wanted:
        return []
    names = ", ".join(f'"{table.name}"."{column}"' for column in table.columns)
    if connection.vendor == "postgresql":
        return _load_rows(table, _read_arrays(table, names, wanted, constants))
    where = " AND ".join(f'"{column}" = ?' for column in table.key)
    # One look-up a key is SQLite's fastest way, and the raw connection spares Django's wrapping of
    # each.
    execute = connection.connection.execute
    statement = f'SELECT {names} FROM "{table.name}" WHERE {where}'
    return _load_rows(
        table, [row for key in wanted if (row := execute(statement, key).fetchone()) is not None]
    )


def _load_rows(table: Table, rows: list[Row]) -> list[Row]:
    """The rows with JSON as what it stands for, and with the zone of dates, which SQLite leaves
    out."""
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
    """One look-up of the whole key per row. Project and day are constants, so that one partition is
    looked into; OFFSET 0 keeps the planner from turning the look-ups round into a walk over the
    day, which it prefers while the day is young and has no statistics."""
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
    """Changes rows that exist, found by the table's one key column, as an upsert would."""
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
