"""What a day of an instance and of a version takes in the database, as it was last measured."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0008_an_earlier_release_may_write"),
    ]

    operations = [
        migrations.CreateModel(
            name="StorageMeasure",
            fields=[
                (
                    "of",
                    models.CharField(
                        choices=[("instance", "instance"), ("version", "version")],
                        max_length=16,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "bytes_a_day",
                    models.FloatField(help_text="NULL: nothing was seen yet.", null=True),
                ),
                ("measured_at", models.DateTimeField()),
                ("took", models.FloatField(help_text="Seconds.")),
            ],
            options={
                "db_table": "storage_measure",
            },
        ),
    ]
