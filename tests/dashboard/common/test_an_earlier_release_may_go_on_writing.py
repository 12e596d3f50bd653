"""Rolling deployment and its rollback: processes of an earlier release can write into the new
schema."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED, Field

OURS = ("accounts", "projects", "ingest", "fleet", "regressions", "alerts", "common")
FIRST = [(app, "0001_initial") for app in OURS]

pytestmark = pytest.mark.django_db


def columns(**of: object) -> dict[str, dict[str, Field]]:
    """Columns by table, of the models at one state of the migrations."""
    models = MigrationLoader(connection).project_state(**of).models
    return {
        f"{app}.{name}": dict(state.fields) for (app, name), state in models.items() if app in OURS
    }


def test_columns_of_the_first_release_exist_and_later_columns_are_optional() -> None:
    first, now = columns(nodes=FIRST), columns()
    assert set(first) <= set(now)
    gone = [
        f"{table}.{name}"
        for table, known in first.items()
        for name in known
        if name not in now[table]
    ]
    needed = [
        f"{table}.{name}"
        for table, known in first.items()
        for name, field in now[table].items()
        if name not in known and not field.null and field.db_default is NOT_PROVIDED
    ]
    assert (gone, needed) == ([], []), (
        "null=True or db_default lets an earlier release write; a column goes one release "
        "after its last use"
    )
