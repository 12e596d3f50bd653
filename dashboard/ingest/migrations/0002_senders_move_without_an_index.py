"""A sender's row is updated with every report: without an index on what changes, PostgreSQL rewrites it in place."""

from typing import Any

from django.db import migrations, models

ROOM = (
    "ALTER TABLE ingest_sender SET (fillfactor = 50)",
    "ALTER TABLE ingest_sender RESET (fillfactor)",
)


def leave_room(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(ROOM[0])


def take_room(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(ROOM[1])


class Migration(migrations.Migration):
    dependencies = [("ingest", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="sender", name="last_seen_at", field=models.DateTimeField()
        ),
        migrations.RunPython(leave_room, take_room),
    ]
