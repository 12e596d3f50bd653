"""Rows of a query as the database's driver gives them: where pages read thousands, Django's second look at every value costs the most."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet


def rows_plain(rows: QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    """What `values_list` asked for, in its order; for numbers, texts and bytes, which both databases give as they are."""
    try:
        sql, params = rows.query.sql_with_params()
    except EmptyResultSet:
        return []
    with connections[rows.db].cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())
