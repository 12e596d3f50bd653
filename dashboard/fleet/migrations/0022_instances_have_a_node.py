from __future__ import annotations

from django.db import migrations, models

from dashboard.common.lock_retry import AddColumn


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("fleet", "0021_plain_help_texts"),
    ]

    operations = [
        AddColumn(
            model_name="instance",
            name="node",
            field=models.CharField(
                db_default="",
                default="",
                help_text="The machine under the host; empty: the host itself.",
                max_length=200,
            ),
        ),
    ]
