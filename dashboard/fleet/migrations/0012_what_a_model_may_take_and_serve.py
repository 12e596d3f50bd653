"""A model has a share of its calls that has to be served compiled, beside what it may take to start."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0011_two_changes_meet"),
    ]

    operations = [
        migrations.AddField(
            model_name="watchedmodel",
            name="served_budget",
            field=models.FloatField(
                help_text="The share of calls, of those looked at, that has to be served compiled.",
                null=True,
            ),
        ),
    ]
