from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("regressions", "0003_an_earlier_release_may_choose")]

    operations = [
        migrations.AlterField(
            model_name="comparison",
            name="judged_minute",
            field=models.BigIntegerField(
                default=0,
                help_text="The first minute that was not closed when it was last judged; 0: to be judged anew.",
            ),
        ),
        migrations.AlterField(
            model_name="comparison",
            name="judged_revision",
            field=models.BigIntegerField(
                default=0,
                help_text="ModelVersion.late_folds of the deployment's version when it was last judged.",
            ),
        ),
    ]
