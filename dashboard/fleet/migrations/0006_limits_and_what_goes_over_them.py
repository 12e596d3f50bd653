"""What the limits of a project count, and when one was reached."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0005_what_becomes_of_findings"),
        ("projects", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="LimitReached",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("series", "series"),
                            ("version", "version"),
                            ("instance", "instance"),
                            ("finding", "finding"),
                        ],
                        max_length=16,
                    ),
                ),
                ("day", models.IntegerField(help_text="Days since 1970.")),
                (
                    "count",
                    models.BigIntegerField(
                        default=0, help_text="How often a fold met a name there was no room for."
                    ),
                ),
                (
                    "example",
                    models.CharField(default="", help_text="The last of them.", max_length=200),
                ),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "db_table": "limit_reached",
            },
        ),
        migrations.AddField(
            model_name="finding",
            name="made_day",
            field=models.IntegerField(
                db_default=0, help_text="Days since 1970: when it became known."
            ),
        ),
        migrations.AddField(
            model_name="instance",
            name="live_minute",
            field=models.BigIntegerField(
                db_default=0,
                help_text="The newest of its minutes and the one it became known in, by which live instances are counted.",
            ),
        ),
        migrations.AddIndex(
            model_name="finding",
            index=models.Index(fields=["project", "made_day"], name="finding_by_day"),
        ),
        migrations.AddIndex(
            model_name="instance",
            index=models.Index(fields=["project", "live_minute"], name="instance_live"),
        ),
        migrations.AddField(
            model_name="limitreached",
            name="project",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="projects.project"
            ),
        ),
        migrations.AddConstraint(
            model_name="limitreached",
            constraint=models.UniqueConstraint(
                fields=("project", "kind", "day"), name="one_limit_per_day"
            ),
        ),
    ]
