from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("regressions", "0007_placebo_preview")]

    operations = [
        migrations.AddField(
            model_name="learnedvariance",
            name="prior_df",
            field=models.IntegerField(null=True),
        ),
    ]
