"""Signatures that no job can make, in addition to the MAC; a row of an earlier release has none."""

from django.db import migrations, models

from dashboard.common.lock_retry import AddColumn


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("ingest", "0007_a_fold_takes_one_project_at_a_time"),
    ]

    operations = [
        AddColumn(
            model_name="command",
            name="signatures",
            field=models.JSONField(
                help_text="Ed25519 signatures by public key; NULL: an earlier release issued it.",
                null=True,
            ),
        ),
    ]
