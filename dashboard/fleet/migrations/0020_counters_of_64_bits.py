"""Every counter of processes that adds up has 64 bits, and a counter that reaches its largest value is noted."""

from __future__ import annotations

from django.db import migrations, models

from dashboard.common.column_retype import columns_retyper

COUNTERS = (
    "windows",
    "compiles",
    "recompiles",
    "compile_failures",
    "request_compiles",
    "cache_hits",
    "cache_misses",
    "cache_bypasses",
)
COUNTERS += ("ooms", "recordings")
TABLES = {
    "ProcessMinute": ("process_minute", COUNTERS),
    "VersionProcessMinute": ("version_process_minute", (*COUNTERS, "instances")),
    "VersionProcessHour": ("version_process_hour", (*COUNTERS, "instances")),
}
WORDS = {
    ("VersionProcessMinute", "instances"): {"help_text": "Instances with data in it."},
    "request_compiles": {"help_text": "Compilations in the middle of requests, after warm-up."},
    "recordings": {"help_text": "CUDA graphs recorded: no compilations.", "db_default": 0},
}


def retyped(model: str) -> migrations.SeparateDatabaseAndState:
    """The model's counters, without a lock that anyone waits for."""
    table, columns = TABLES[model]
    fields = {
        name: models.BigIntegerField(
            default=0, **(WORDS.get((model, name)) or WORDS.get(name) or {})
        )
        for name in columns
    }
    return migrations.SeparateDatabaseAndState(
        [
            migrations.RunPython(
                columns_retyper(table, columns, "bigint"),
                columns_retyper(table, columns, "integer"),
            )
        ],
        [
            migrations.AlterField(model_name=model.lower(), name=name, field=field)
            for name, field in fields.items()
        ],
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("fleet", "0019_instances_of_an_earlier_release_count"),
    ]

    operations = [
        *(retyped(model) for model in TABLES),
        migrations.AlterField(
            model_name="limitreached",
            name="kind",
            field=models.CharField(
                choices=[
                    (kind, kind)
                    for kind in (
                        "environment",
                        "series",
                        "version",
                        "instance",
                        "finding",
                        "counter",
                    )
                ],
                max_length=16,
            ),
        ),
    ]
