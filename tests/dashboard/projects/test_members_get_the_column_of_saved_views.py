"""Migration of saved views: members of the previous release keep working, and have no views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

BEFORE, AFTER = "0004_plain_help_texts", "0005_members_save_fleet_views"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def migrate() -> Iterator[Any]:
    def run(name: str) -> Any:
        executor = MigrationExecutor(connection)
        return executor.migrate([("projects", name)]).apps

    yield run
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def insert_member(project: int, user: int) -> None:
    """A row as the previous release writes it, without the column."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO project_member (project_id, user_id, role, created_at)"
            " VALUES (%s, %s, 'viewer', '2026-01-01 00:00:00+00:00')",
            [project, user],
        )


def test_members_of_before_and_of_the_previous_release_have_no_views(
    migrate: Any, django_user_model: Any
) -> None:
    first, second = (django_user_model.objects.create(username=name) for name in ("mara", "nils"))
    old = migrate(BEFORE)
    project = old.get_model("projects", "Project").objects.create(
        name="Ranking", slug="ranking", created_at="2026-01-01T00:00:00Z"
    )
    insert_member(project.pk, first.pk)
    new = migrate(AFTER)
    insert_member(project.pk, second.pk)
    members = new.get_model("projects", "Member").objects.order_by("user__username")
    assert [one.fleet_views for one in members] == [[], []]
    migrate(BEFORE)
    assert old.get_model("projects", "Member").objects.count() == 2
