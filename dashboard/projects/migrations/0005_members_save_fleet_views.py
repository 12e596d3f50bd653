from __future__ import annotations

from django.db import migrations, models

from dashboard.common.lock_retry import AddColumn


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("projects", "0004_plain_help_texts"),
    ]

    operations = [
        AddColumn(
            model_name="member",
            name="fleet_views",
            field=models.JSONField(
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="Saved views of the Fleet page: names and queries.",
            ),
        ),
    ]
