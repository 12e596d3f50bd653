from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ingest", "0005_engines_without_an_agent"),
    ]

    operations = [
        migrations.CreateModel(
            name="BucketLayout",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                (
                    "bounds",
                    models.JSONField(
                        help_text="Upper bounds in seconds, in order; the last may be null, which is no bound."
                    ),
                ),
            ],
            options={
                "db_table": "ingest_bucket_layout",
            },
        ),
    ]
