"""Time series: calls and process values per minute and hour.

Keys begin with the project and include the day, which partitions the tables on PostgreSQL. Every
column adds (64-bit counts, seconds, sketches) or keeps the larger value (gauges). The order of late
and repeated folds therefore does not matter. No foreign key refers to these rows or from them.
"""

from django.db import models

from dashboard.fleet.models.entities import Series


class CallColumns(models.Model):
    """Columns of a minute or hour of calls.

    NULL means not reported. Quantiles are in seconds, computed from the sketches during the fold.
    """

    calls = models.BigIntegerField(default=0)
    errors = models.BigIntegerField(default=0)
    items = models.FloatField(null=True)
    compiled = models.BigIntegerField(default=0)
    partial = models.BigIntegerField(default=0)
    eager_limit = models.BigIntegerField(default=0)
    eager_stance = models.BigIntegerField(default=0)
    eager_skip = models.BigIntegerField(default=0)
    eager_disabled = models.BigIntegerField(default=0)
    eager_error = models.BigIntegerField(default=0)
    eager_no_graph = models.BigIntegerField(
        default=0, db_default=0, help_text="Calls that Dynamo checked without a graph to run."
    )
    unknown = models.BigIntegerField(default=0)
    sampled = models.BigIntegerField(default=0)
    covered = models.FloatField(default=0.0, help_text="Seconds of windows in it.")
    latency = models.BinaryField(null=True, help_text="Packed sketch of steady calls, wall time.")
    gpu = models.BinaryField(null=True, help_text="Packed sketch of sampled GPU time.")
    warmup = models.BinaryField(
        null=True, help_text="Packed sketch of calls that compiled or waited for a compilation."
    )
    stalled = models.BinaryField(
        null=True, help_text="Packed sketch of calls that compiled or waited for it after warm-up."
    )
    stalled_count = models.BigIntegerField(
        null=True, help_text="NULL: the agents do not report stalled calls."
    )
    stalled_sum = models.FloatField(null=True, help_text="Seconds of stalled calls.")
    caller_p50 = models.FloatField(
        null=True, help_text="Of steady and stalled calls together; NULL like stalled_count."
    )
    caller_p95 = models.FloatField(null=True)
    caller_p99 = models.FloatField(null=True)
    latency_count = models.BigIntegerField(default=0)
    latency_sum = models.FloatField(default=0.0)
    p50 = models.FloatField(null=True)
    p95 = models.FloatField(null=True)
    p99 = models.FloatField(null=True)
    gpu_count = models.BigIntegerField(default=0)
    gpu_p50 = models.FloatField(null=True)
    gpu_p95 = models.FloatField(null=True)
    gpu_p99 = models.FloatField(null=True)

    class Meta:
        abstract = True


class ProcessColumns(models.Model):
    """Columns without a region: compilations, caches, memory.

    Gauges keep the largest value; NULL means not observed.
    """

    windows = models.BigIntegerField(default=0)
    covered = models.FloatField(default=0.0, help_text="Seconds of windows in it.")
    compiles = models.BigIntegerField(default=0)
    recompiles = models.BigIntegerField(default=0)
    compile_failures = models.BigIntegerField(default=0)
    request_compiles = models.BigIntegerField(
        default=0, help_text="Compilations in the middle of requests, after warm-up."
    )
    compile_seconds = models.FloatField(default=0.0)
    saved_seconds = models.FloatField(default=0.0, help_text="torch's estimate.")
    cache_hits = models.BigIntegerField(default=0)
    cache_misses = models.BigIntegerField(default=0)
    cache_bypasses = models.BigIntegerField(default=0)
    hit_seconds = models.FloatField(
        default=0.0, help_text="Seconds of compilations served by the FX or AOTAutograd cache."
    )
    miss_seconds = models.FloatField(default=0.0)
    graph_breaks = models.BigIntegerField(default=0)
    fallbacks = models.BigIntegerField(default=0)
    cudagraph_skips = models.BigIntegerField(default=0)
    ooms = models.BigIntegerField(default=0)
    recordings = models.BigIntegerField(
        default=0, db_default=0, help_text="CUDA graphs recorded: no compilations."
    )
    recording_seconds = models.FloatField(default=0.0, db_default=0.0)
    gpu_allocated = models.BigIntegerField(null=True)
    gpu_peak = models.BigIntegerField(null=True)
    gpu_reserved = models.BigIntegerField(null=True)
    gpu_graph_pool = models.BigIntegerField(
        null=True, help_text="Bytes that recorded CUDA graphs hold."
    )
    gpu_utilisation = models.FloatField(null=True)
    host_rss = models.BigIntegerField(null=True)
    host_rss_slope = models.FloatField(
        null=True, help_text="Bytes per hour, over the last hour of the process."
    )
    workers_rss = models.BigIntegerField(null=True)
    degraded_frames = models.IntegerField(null=True)
    compiling_for = models.FloatField(null=True)

    class Meta:
        abstract = True


class RegionMinute(CallColumns):
    """Calls of one instance in one series in one minute: the input of verdicts."""

    pk = models.CompositePrimaryKey("project_id", "day", "instance_id", "series_id", "minute")
    project_id = models.BigIntegerField()
    day = models.IntegerField(help_text="Days since 1970.")
    instance_id = models.BigIntegerField(help_text="Instance.id")
    series_id = models.BigIntegerField(help_text="Series.id")
    minute = models.BigIntegerField(help_text="Minutes since 1970.")

    class Meta:
        db_table = "region_minute"
        indexes = [
            models.Index(
                fields=["series_id", "minute", "instance_id"], name="region_minute_by_series"
            )
        ]


class ProcessMinute(ProcessColumns):
    """Process values of one instance in one minute, without a region."""

    pk = models.CompositePrimaryKey("project_id", "day", "instance_id", "minute")
    project_id = models.BigIntegerField()
    day = models.IntegerField()
    instance_id = models.BigIntegerField(help_text="Instance.id")
    minute = models.BigIntegerField()

    class Meta:
        db_table = "process_minute"


class VersionMinute(CallColumns):
    """Calls of all instances of a series in one minute, for trends."""

    pk = models.CompositePrimaryKey("project_id", "day", "series_id", "minute")
    project_id = models.BigIntegerField()
    day = models.IntegerField()
    series_id = models.BigIntegerField(help_text="Series.id")
    minute = models.BigIntegerField()

    class Meta:
        db_table = "version_minute"


class VersionHour(CallColumns):
    """Calls of all instances of a series in one hour, for ranges of days to a year."""

    pk = models.CompositePrimaryKey("project_id", "day", "series_id", "hour")
    project_id = models.BigIntegerField()
    day = models.IntegerField()
    series_id = models.BigIntegerField(help_text="Series.id")
    hour = models.BigIntegerField(help_text="Hours since 1970.")

    class Meta:
        db_table = "version_hour"


class VersionProcessMinute(ProcessColumns):
    """Process values of all instances of a version in one environment in one minute.

    Gauges hold the value of the highest instance.
    """

    pk = models.CompositePrimaryKey(
        "project_id", "day", "version_id", "environment", "gpu_type", "minute"
    )
    project_id = models.BigIntegerField()
    day = models.IntegerField()
    version_id = models.BigIntegerField(help_text="ModelVersion.id")
    environment = models.CharField(max_length=64)
    gpu_type = models.CharField(max_length=100)
    minute = models.BigIntegerField()
    instances = models.BigIntegerField(default=0, help_text="Instances with data in it.")

    class Meta:
        db_table = "version_process_minute"


class VersionProcessHour(ProcessColumns):
    """Process values per hour; `instances` is the largest number in any minute of the hour."""

    pk = models.CompositePrimaryKey(
        "project_id", "day", "version_id", "environment", "gpu_type", "hour"
    )
    project_id = models.BigIntegerField()
    day = models.IntegerField()
    version_id = models.BigIntegerField(help_text="ModelVersion.id")
    environment = models.CharField(max_length=64)
    gpu_type = models.CharField(max_length=100)
    hour = models.BigIntegerField()
    instances = models.BigIntegerField(default=0)

    class Meta:
        db_table = "version_process_hour"


for _table in (VersionMinute, VersionHour):
    # Allows joins as `series` in queries. Migrations see no column, constraint or field.
    models.ForeignObject(
        Series,
        on_delete=models.DO_NOTHING,
        from_fields=["series_id"],
        to_fields=["id"],
        related_name="+",
    ).contribute_to_class(_table, "series", private_only=True)
