"""Columns that came after the first release have a default in the database: an earlier release writes without them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0007_how_instances_are"),
    ]

    operations = [
        migrations.AlterField(
            model_name="compileevent",
            name="backend",
            field=models.CharField(db_default="", default="", max_length=64),
        ),
        migrations.AlterField(
            model_name="compileevent",
            name="cache_autotune",
            field=models.CharField(db_default="", default="", max_length=8),
        ),
        migrations.AlterField(
            model_name="compileevent",
            name="cache_bundle",
            field=models.CharField(
                db_default="",
                default="",
                help_text="Triton kernels that travel with a cached graph.",
                max_length=8,
            ),
        ),
        migrations.AlterField(
            model_name="compileevent",
            name="cache_key",
            field=models.CharField(
                db_default="",
                default="",
                help_text="The same in every process that asked for the same.",
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="compileevent",
            name="cache_mega",
            field=models.CharField(
                db_default="",
                default="",
                help_text="What torch.compiler.load_cache_artifacts brought.",
                max_length=8,
            ),
        ),
        migrations.AlterField(
            model_name="compileevent",
            name="dynamic",
            field=models.CharField(
                db_default="",
                default="",
                help_text="automatic, yes, no, or empty: not known.",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="compileevent",
            name="miss",
            field=models.CharField(
                db_default="",
                default="",
                help_text="Why it was not in the cache, by the agent's own comparison.",
                max_length=200,
            ),
        ),
        migrations.AlterField(
            model_name="compileevent",
            name="mode",
            field=models.CharField(db_default="", default="", max_length=64),
        ),
        migrations.AlterField(
            model_name="compileevent",
            name="reason_kind",
            field=models.CharField(
                db_default="",
                default="",
                help_text="guard, race, limit, failure, or empty.",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="findinginstance",
            name="seconds",
            field=models.FloatField(
                db_default=0.0, default=0.0, help_text="What it cost together, where that is known."
            ),
        ),
        migrations.AlterField(
            model_name="findingversion",
            name="seconds",
            field=models.FloatField(
                db_default=0.0, default=0.0, help_text="What it cost together, where that is known."
            ),
        ),
        migrations.AlterField(
            model_name="instance",
            name="compiling_frame",
            field=models.CharField(
                db_default="",
                default="",
                help_text="What it compiles, from its newest report.",
                max_length=512,
            ),
        ),
    ]
