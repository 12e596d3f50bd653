"""Binary cursor: sends parameters to PostgreSQL apart from the statement, in binary format.

Django's own cursor writes parameters into the text of the statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection


@contextmanager
def open_binary_cursor() -> Iterator[psycopg.Cursor[tuple[Any, ...]]]:
    """Opens the cursor on this thread's connection. Errors are raised as Django's errors."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        yield cursor
