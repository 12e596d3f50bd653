"""Raw query rows: rows as the database driver returns them. For pages that read thousands of rows,
Django's conversion of each value costs the most time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from operator import itemgetter
from typing import Any, TypeVar, cast

import psycopg
from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import DateTimeField, JSONField, Model, QuerySet
from django.db.models.base import ModelState
from psycopg.pq import Format

Rows = list[tuple[Any, ...]]
T = TypeVar("T", bound=Model)
ANY_VALUE = -(2**31) + 1
"""The value with which a query is compiled once; `fetch_compiled` replaces it."""


@dataclass(frozen=True)
class CompiledQuery:
    """One query of a combined statement: position, SQL, parameters, and the names and types of its
    columns.

    `stored` maps a column to its converter, for values that the driver returns in another form.
    SQLite returns times and JSON as text.
    """

    place: int
    sql: str
    given: tuple[Any, ...]
    names: list[str]
    kinds: list[str]
    stored: dict[int, Callable[[Any], Any]]

    def read(self, rows: Iterable[tuple[Any, ...]]) -> Rows:
        """Converts the rows to Python values."""
        if not self.stored:
            return list(rows)
        converters = list(self.stored.items())
        return [_convert(row, converters) for row in rows]


def fetch_rows(rows: QuerySet[Any, Any]) -> Rows:
    """Returns the rows of a `values_list` query, in its order, without the conversions of custom
    fields."""
    return fetch_rows_together(rows)[0]


def fetch_rows_together(*queries: QuerySet[Any, Any] | None) -> list[Rows]:
    """Runs several queries in one statement, so that a page waits for the database once. A query of
    None yields no rows. The order of rows is not kept.

    Queries share columns of one type. With separate columns per query, most columns of a row would
    be empty, and empty columns cost time too.
    """
    found: list[Rows] = [[] for _ in queries]
    arms = [
        arm
        for place, rows in enumerate(queries)
        if rows is not None and (arm := _compile_query(place, rows))
    ]
    if not arms:
        return found
    with _cursor(next(rows.db for rows in queries if rows is not None)) as cursor:
        if len(arms) == 1:
            cursor.execute(arms[0].sql, arms[0].given)
            found[arms[0].place] = arms[0].read(cursor.fetchall())
            return found
        columns, taken = _share_columns([arm.kinds for arm in arms])
        statement = " UNION ALL ".join(
            _select(number, arm, columns, taken[number]) for number, arm in enumerate(arms)
        )
        cursor.execute(statement, [value for arm in arms for value in arm.given])
        own, rows_of = (
            [_build_column_getter(mine) for mine in taken],
            [found[arm.place] for arm in arms],
        )
        for row in cursor.fetchall():
            rows_of[row[0]].append(own[row[0]](row))
    for arm in arms:
        found[arm.place] = arm.read(found[arm.place])
    return found


@cache
def compile_once(build: Callable[[Any], QuerySet[Any, Any]], vendor: str) -> CompiledQuery:
    """Compiles a query for a database vendor once per process. `build` returns it for a value, and
    its other parameters are constants."""
    compiled = _compile_query(0, build(ANY_VALUE))
    assert compiled is not None and vendor
    return compiled


def fetch_compiled(build: Callable[[Any], QuerySet[Any, Any]], value: int) -> Rows:
    """Returns the rows of `build(value)`, for a query that each request needs: Django takes longer
    to build and to compile it than the database to answer it."""
    query = compile_once(build, connections[DEFAULT_DB_ALIAS].vendor)
    with _cursor(DEFAULT_DB_ALIAS) as cursor:
        cursor.execute(query.sql, [value if one == ANY_VALUE else one for one in query.given])
        return query.read(cursor.fetchall())


def fetch_objects_together(*queries: QuerySet[Any]) -> list[list[Any]]:
    """Fetches objects of several tables in one statement, without related objects. The order is not
    kept."""
    tables = [rows.model for rows in queries]
    names = [[field.attname for field in table._meta.concrete_fields] for table in tables]
    found = fetch_rows_together(
        *(rows.values_list(*own) for rows, own in zip(queries, names, strict=True))
    )
    return [
        [table.from_db(rows.db, own, row) for row in told]
        for rows, table, own, told in zip(queries, tables, names, found, strict=True)
    ]


def build_object(
    table: type[T], names: Sequence[str], values: Sequence[Any], **related: Model | None
) -> T:
    """An object from columns of the default database, at a fifth of the cost of `from_db`, with
    its related objects. Other columns are deferred."""
    made = table.__new__(table)
    made._state = ModelState()
    made._state.db, made._state.adding = DEFAULT_DB_ALIAS, False
    made._state.fields_cache = related
    made.__dict__.update(zip(names, values, strict=True))
    return made


def _build_column_getter(places: list[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Returns a getter for these columns of a row. For a single column, `itemgetter` would not
    return a tuple."""
    return itemgetter(*places) if len(places) > 1 else lambda row: (row[places[0]],)


def _cursor(database: str) -> AbstractContextManager[Any]:
    """Opens a cursor. PostgreSQL sends numbers and bytes in binary format, which saves a third of
    the time; SQLite always does."""
    connection = cast(Any, connections[database])
    if connection.vendor != "postgresql":
        return cast(AbstractContextManager[Any], connection.cursor())
    connection.ensure_connection()
    binary = psycopg.Cursor(connection.connection)
    binary.format = Format.BINARY
    return cast(
        AbstractContextManager[Any], connection._prepare_cursor(binary)
    )  # Django's wrapper, which counts and times queries


def _compile_query(place: int, rows: QuerySet[Any, Any]) -> CompiledQuery | None:
    """Compiles the query; None if its conditions can never match."""
    connection, compiler = connections[rows.db], rows.query.get_compiler(rows.db)
    try:
        sql, given = compiler.as_sql(with_col_aliases=True)
    except EmptyResultSet:
        return None
    chosen, _, _ = compiler.get_select(with_col_aliases=True)
    kinds = [
        expression.output_field.cast_db_type(connection) or "text" for expression, _, _ in chosen
    ]
    stored: dict[int, Callable[[Any], Any]] = {
        column: partial(turned, expression=expression, connection=connection)
        for column, (expression, _, _) in enumerate(chosen)
        for turned in connection.ops.get_db_converters(expression)[:1]
    }
    if connection.vendor != "postgresql":
        for column, (expression, _, _) in enumerate(chosen):
            if isinstance(expression.output_field, JSONField):
                stored[column] = _json
            elif isinstance(expression.output_field, DateTimeField):
                stored[column] = _time
    return CompiledQuery(
        place, sql, given, [connection.ops.quote_name(name) for _, _, name in chosen], kinds, stored
    )


def _convert(
    row: tuple[Any, ...], converters: list[tuple[int, Callable[[Any], Any]]]
) -> tuple[Any, ...]:
    values = list(row)
    for place, convert in converters:
        values[place] = convert(values[place])
    return tuple(values)


def _time(value: datetime | str | None) -> datetime | None:
    """The time, which SQLite stores in UTC without a zone, and returns as text in computed
    columns."""
    read = datetime.fromisoformat(value) if isinstance(value, str) else value
    return read.replace(tzinfo=UTC) if read is not None and read.tzinfo is None else read


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _share_columns(kinds_of: list[list[str]]) -> tuple[list[str], list[list[int]]]:
    """Assigns shared columns. Returns the types of all columns, with the query number first, and
    each query's column positions."""
    columns = ["integer"]
    taken = []
    for kinds in kinds_of:
        mine: list[int] = []
        for kind in kinds:
            free = (
                place
                for place, known in enumerate(columns)
                if place and known == kind and place not in mine
            )
            mine.append(next(free, len(columns)))
            columns += [kind] * (mine[-1] == len(columns))
        taken.append(mine)
    return columns, taken


def _select(number: int, arm: CompiledQuery, columns: list[str], mine: list[int]) -> str:
    """One query, padded with empty columns for the other queries. PostgreSQL treats an empty column
    without a type as text."""
    own = dict(zip(mine, arm.names, strict=True))
    rest = (own.get(place, f"CAST(NULL AS {kind})") for place, kind in enumerate(columns) if place)
    return f"SELECT {', '.join([str(number), *rest])} FROM ({arm.sql}) own"
