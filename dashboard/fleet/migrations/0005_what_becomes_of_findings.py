"""What becomes of a finding in each environment."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0004_what_the_caches_answered"),
    ]

    operations = [
        migrations.AddField(
            model_name="watchedmodel",
            name="lives_revision",
            field=models.BigIntegerField(
                db_default=0,
                help_text="The sum of its versions' revisions that the lives of its findings were read off at.",
            ),
        ),
        migrations.AlterField(
            model_name="finding",
            name="state",
            field=models.CharField(
                default="new",
                help_text="Written by releases before FindingLife alone.",
                max_length=16,
            ),
        ),
        migrations.CreateModel(
            name="FindingLife",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("environment", models.CharField(max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "new"),
                            ("ongoing", "ongoing"),
                            ("gone", "gone"),
                            ("back", "back"),
                        ],
                        max_length=16,
                    ),
                ),
                ("since_minute", models.BigIntegerField(help_text="Minutes since 1970.")),
                (
                    "finding",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lives",
                        to="fleet.finding",
                    ),
                ),
                (
                    "first_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="fleet.modelversion",
                    ),
                ),
                (
                    "last_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="fleet.modelversion",
                    ),
                ),
            ],
            options={
                "db_table": "finding_life",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("finding", "environment"), name="one_finding_life"
                    )
                ],
            },
        ),
    ]
