"""What tells a repeated report from another one under the same range; a row of an earlier release has none."""

from django.db import migrations, models

from dashboard.common.lock_retry import AddColumn


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("ingest", "0008_commands_are_signed_with_ed25519"),
    ]

    operations = [
        AddColumn(
            model_name="sender",
            name="recent",
            field=models.BinaryField(
                help_text="Digests of the last 16 reports; NULL: an earlier release stored them.",
                null=True,
            ),
        ),
    ]
