"""Environments are counted against a limit, too."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0009_what_a_day_takes"),
    ]

    operations = [
        migrations.AlterField(
            model_name="limitreached",
            name="kind",
            field=models.CharField(
                choices=[
                    ("environment", "environment"),
                    ("series", "series"),
                    ("version", "version"),
                    ("instance", "instance"),
                    ("finding", "finding"),
                ],
                max_length=16,
            ),
        ),
    ]
