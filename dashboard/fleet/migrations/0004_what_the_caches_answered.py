"""What each compile cache answered, under which key, why a compilation missed, and what findings cost."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0003_memory_that_grows"),
    ]

    operations = [
        migrations.AddField(
            model_name="compileevent",
            name="cache_autotune",
            field=models.CharField(default="", max_length=8),
        ),
        migrations.AddField(
            model_name="compileevent",
            name="cache_bundle",
            field=models.CharField(
                default="",
                help_text="Triton kernels that travel with a cached graph.",
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="compileevent",
            name="cache_key",
            field=models.CharField(
                default="",
                help_text="The same in every process that asked for the same.",
                max_length=32,
            ),
        ),
        migrations.AddField(
            model_name="compileevent",
            name="cache_mega",
            field=models.CharField(
                default="",
                help_text="What torch.compiler.load_cache_artifacts brought.",
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="compileevent",
            name="miss",
            field=models.CharField(
                default="",
                help_text="Why it was not in the cache, by the agent's own comparison.",
                max_length=200,
            ),
        ),
        migrations.AddField(
            model_name="findinginstance",
            name="seconds",
            field=models.FloatField(
                default=0.0, help_text="What it cost together, where that is known."
            ),
        ),
        migrations.AddField(
            model_name="findingversion",
            name="seconds",
            field=models.FloatField(
                default=0.0, help_text="What it cost together, where that is known."
            ),
        ),
    ]
