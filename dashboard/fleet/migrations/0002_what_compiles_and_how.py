"""How a frame was compiled and why, and what an instance compiles now."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="compileevent",
            name="backend",
            field=models.CharField(default="", max_length=64),
        ),
        migrations.AddField(
            model_name="compileevent",
            name="dynamic",
            field=models.CharField(
                default="", help_text="automatic, yes, no, or empty: not known.", max_length=16
            ),
        ),
        migrations.AddField(
            model_name="compileevent",
            name="fullgraph",
            field=models.BooleanField(null=True),
        ),
        migrations.AddField(
            model_name="compileevent",
            name="mode",
            field=models.CharField(default="", max_length=64),
        ),
        migrations.AddField(
            model_name="compileevent",
            name="reason_kind",
            field=models.CharField(
                default="", help_text="guard, race, limit, failure, or empty.", max_length=16
            ),
        ),
        migrations.AddField(
            model_name="instance",
            name="compiling_frame",
            field=models.CharField(
                default="", help_text="What it compiles, from its newest report.", max_length=512
            ),
        ),
        migrations.AddField(
            model_name="instance",
            name="compiling_usual",
            field=models.FloatField(help_text="Seconds that frame took at most before.", null=True),
        ),
    ]
