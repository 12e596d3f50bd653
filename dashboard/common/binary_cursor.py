"""A PostgreSQL cursor that sends values apart from the statement, in binary; Django's own writes
them into the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection


@contextmanager
def open_binary_cursor() -> Iterator[psycopg.Cursor[tuple[Any, ...]]]:
    """The cursor, on this thread's connection; what goes wrong is raised as Django's errors."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        yield cursor
