"""Instances that the earlier release writes while this one replaces it count from their first minute on, as they did there."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0018_processes_are_named"),
    ]

    operations = [
        migrations.AlterField(
            model_name="instance",
            name="active_minute",
            field=models.BigIntegerField(
                db_default=0,
                default=None,
                help_text="The first minute with calls or compilations; NULL: it only starts; 0: from its first minute on.",
                null=True,
            ),
        ),
    ]
