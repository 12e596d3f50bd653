"""What tells a repeated report from another one under the same range; a row of an earlier release has none."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ingest", "0008_commands_are_signed_with_ed25519"),
    ]

    operations = [
        migrations.AddField(
            model_name="sender",
            name="recent",
            field=models.BinaryField(help_text="Digests of the last 16 reports; NULL: an earlier release stored them.", null=True),
        ),
    ]
