"""A fold notes whose rows it takes, and finds the rows of one project among those of all."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

INDEX = models.Index(fields=["project", "shard", "id"], name="inbox_by_project")


def index_make(apps: Any, schema_editor: Any) -> None:
    """While reports come in: PostgreSQL builds the index next to writers."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX CONCURRENTLY IF EXISTS inbox_by_project")
        schema_editor.execute(
            "CREATE INDEX CONCURRENTLY inbox_by_project ON ingest_inbox (project_id, shard, id)"
        )
    else:
        schema_editor.execute(
            "CREATE INDEX IF NOT EXISTS inbox_by_project ON ingest_inbox (project_id, shard, id)"
        )


def index_drop(apps: Any, schema_editor: Any) -> None:
    """The way back."""
    schema_editor.execute(
        "DROP INDEX"
        + " CONCURRENTLY" * (schema_editor.connection.vendor == "postgresql")
        + " IF EXISTS inbox_by_project"
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("ingest", "0006_layouts_of_buckets_are_kept"),
    ]

    operations = [
        migrations.AddField(
            model_name="foldattempt",
            name="project_id",
            field=models.BigIntegerField(
                help_text="Whose rows; NULL: all rows of the range, as earlier releases took them.",
                null=True,
            ),
        ),
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(index_make, index_drop)],
            [migrations.AddIndex(model_name="inboxrow", index=INDEX)],
        ),
    ]
