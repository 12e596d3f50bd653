"""How fast the host memory of a process grows, and what its CUDA graphs hold."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0002_what_compiles_and_how"),
    ]

    operations = [
        migrations.AddField(
            model_name="processminute",
            name="gpu_graph_pool",
            field=models.BigIntegerField(
                help_text="Bytes that recorded CUDA graphs hold.", null=True
            ),
        ),
        migrations.AddField(
            model_name="processminute",
            name="host_rss_slope",
            field=models.FloatField(
                help_text="Bytes per hour, over the last hour of the process.", null=True
            ),
        ),
        migrations.AddField(
            model_name="versionprocesshour",
            name="gpu_graph_pool",
            field=models.BigIntegerField(
                help_text="Bytes that recorded CUDA graphs hold.", null=True
            ),
        ),
        migrations.AddField(
            model_name="versionprocesshour",
            name="host_rss_slope",
            field=models.FloatField(
                help_text="Bytes per hour, over the last hour of the process.", null=True
            ),
        ),
        migrations.AddField(
            model_name="versionprocessminute",
            name="gpu_graph_pool",
            field=models.BigIntegerField(
                help_text="Bytes that recorded CUDA graphs hold.", null=True
            ),
        ),
        migrations.AddField(
            model_name="versionprocessminute",
            name="host_rss_slope",
            field=models.FloatField(
                help_text="Bytes per hour, over the last hour of the process.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="coldstart",
            name="phases",
            field=models.JSONField(
                default=dict,
                help_text="Marks, and the stages that the agent told, else two found from its reports.",
            ),
        ),
    ]
