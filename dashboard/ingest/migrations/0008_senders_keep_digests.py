"""A sender keeps digests of the bodies under its newest ranges. NULL where a process of an earlier release wrote the row."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ingest", "0007_a_fold_takes_one_project_at_a_time"),
    ]

    operations = [
        migrations.AddField(
            model_name="sender",
            name="digests",
            field=models.BinaryField(
                help_text="First and last number and digest of the body, 24 bytes each, of at most 32 ranges stored last.", null=True
            ),
        ),
    ]
