"""Rows of queries as the database's driver gives them: where pages read thousands, Django's second look at every value costs the most."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet

Rows = list[tuple[Any, ...]]


def rows_plain(rows: QuerySet[Any, Any]) -> Rows:
    """What `values_list` asked for, in its order; for numbers, texts and bytes, which both databases give as they are."""
    return rows_together(rows)[0]


def rows_together(*queries: QuerySet[Any, Any] | None) -> list[Rows]:
    """The same of several queries in one statement, so that a page waits for its database once; None has no rows, and no order is kept.

    Each query has columns of its own, which are empty in the rows of the others."""
    found: list[Rows] = [[] for _ in queries]
    arms = [(place, *compiled) for place, rows in enumerate(queries) if rows is not None and (compiled := _compiled(rows))]
    if not arms:
        return found
    with connections[next(rows.db for rows in queries if rows is not None)].cursor() as cursor:
        if len(arms) == 1:
            place, sql, given, _ = arms[0]
            cursor.execute(sql, given)
            found[place] = list(cursor.fetchall())
            return found
        cursor.execute(" UNION ALL ".join(_arm(number, arms) for number in range(len(arms))), [one for arm in arms for one in arm[2]])
        ends, end = [], 1
        for arm in arms:
            ends.append((arm[0], end, end := end + len(arm[3])))
        for row in cursor.fetchall():
            place, first, last = ends[row[0]]
            found[place].append(row[first:last])
    return found


def _compiled(rows: QuerySet[Any, Any]) -> tuple[str, tuple[Any, ...], list[str]] | None:
    """The statement, its values, and the database's type of each column; None where the conditions cannot hold."""
    connection, compiler = connections[rows.db], rows.query.get_compiler(rows.db)
    try:
        sql, given = compiler.as_sql()
    except EmptyResultSet:
        return None
    chosen, _, _ = compiler.get_select()
    return sql, given, [expression.output_field.cast_db_type(connection) or "text" for expression, _, _ in chosen]


def _arm(number: int, arms: list[tuple[int, str, tuple[Any, ...], list[str]]]) -> str:
    """One query between empty columns of the others' types: without its type PostgreSQL takes an empty column for text."""
    before = [f"CAST(NULL AS {kind})" for arm in arms[:number] for kind in arm[3]]
    after = [f"CAST(NULL AS {kind})" for arm in arms[number + 1 :] for kind in arm[3]]
    return f"SELECT {', '.join([str(number), *before, 'own.*', *after])} FROM ({arms[number][1]}) own"
