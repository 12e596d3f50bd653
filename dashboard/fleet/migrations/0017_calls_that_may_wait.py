"""A model has a share of its calls that may wait for a compilation after warm-up."""

from django.db import migrations, models

from dashboard.common.lock_retry import AddColumn


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("fleet", "0016_what_callers_wait_for"),
    ]

    operations = [
        AddColumn(
            model_name="watchedmodel",
            name="stalled_budget",
            field=models.FloatField(
                help_text="The share of calls that may wait for a compilation after warm-up.",
                null=True,
            ),
        ),
    ]
