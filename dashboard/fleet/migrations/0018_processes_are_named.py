from __future__ import annotations

from typing import Any

from django.db import migrations, models

from dashboard.common.lock_retry import AddColumn

ROWS = 2000
"""That one statement changes: their writers wait until it commits."""
PIDS = {
    "postgresql": "UPDATE instance SET pid = NULLIF((identity->>'pid')::bigint, 0) WHERE jsonb_typeof(identity->'pid') = 'number'{some}",
    "sqlite": "UPDATE instance SET pid = NULLIF(json_extract(identity, '$.pid'), 0) WHERE json_type(identity, '$.pid') = 'integer'{some}",
}


def pids_read(apps: Any, schema_editor: Any) -> None:
    """Process ids out of what instances last said of themselves."""
    statement = PIDS[schema_editor.connection.vendor]
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM instance")
        last = cursor.fetchone()[0]
        for first in range(1, last + 1, ROWS):
            cursor.execute(
                statement.format(
                    some=f" AND pid IS NULL AND id BETWEEN {first} AND {first + ROWS - 1}"
                )
            )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("fleet", "0017_calls_that_may_wait"),
    ]

    operations = [
        AddColumn(
            model_name="instance",
            name="pid",
            field=models.IntegerField(
                help_text="Its process id on its host; NULL: not known.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="instance",
            name="ended_at",
            field=models.DateTimeField(
                help_text="The end of the window whose report says that it ends.", null=True
            ),
        ),
        migrations.RunPython(pids_read, migrations.RunPython.noop),
    ]
