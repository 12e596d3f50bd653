"""What instances are told apart by: eager calls, late windows."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0006_limits_and_what_goes_over_them"),
    ]

    operations = [
        migrations.AddField(
            model_name="instance",
            name="calls_seq",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="The newest report that knew of calls whether they ran compiled.",
            ),
        ),
        migrations.AddField(
            model_name="instance",
            name="eager_calls",
            field=models.BigIntegerField(
                db_default=0, default=0, help_text="Of them, those that ran eager."
            ),
        ),
        migrations.AddField(
            model_name="instance",
            name="known_calls",
            field=models.BigIntegerField(db_default=0, default=0, help_text="Those calls."),
        ),
        migrations.AddField(
            model_name="instance",
            name="late_windows",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="Windows that came after their minute was closed for judging.",
            ),
        ),
    ]
