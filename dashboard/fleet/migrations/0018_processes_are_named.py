from __future__ import annotations

from typing import Any

from django.db import migrations, models

PIDS = {
    "postgresql": "UPDATE instance SET pid = NULLIF((identity->>'pid')::bigint, 0) WHERE jsonb_typeof(identity->'pid') = 'number'",
    "sqlite": "UPDATE instance SET pid = NULLIF(json_extract(identity, '$.pid'), 0) WHERE json_type(identity, '$.pid') = 'integer'",
}


def pids_read(apps: Any, schema_editor: Any) -> None:
    """Process ids out of what instances last said of themselves."""
    schema_editor.execute(PIDS[schema_editor.connection.vendor])


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0017_calls_that_may_wait"),
    ]

    operations = [
        migrations.AddField(
            model_name="instance",
            name="pid",
            field=models.IntegerField(help_text="Its process id on its host; NULL: not known.", null=True),
        ),
        migrations.AlterField(
            model_name="instance",
            name="ended_at",
            field=models.DateTimeField(help_text="The end of the window whose report says that it ends.", null=True),
        ),
        migrations.RunPython(pids_read, migrations.RunPython.noop),
    ]
