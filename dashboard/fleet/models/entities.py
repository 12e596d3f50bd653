"""Entities: models, versions, deployments, instances, and the series of their calls."""

from django.db import models

from dashboard.fleet.fold.keys import OTHER
from dashboard.projects.models import Project


class WatchedModel(models.Model):
    """A deployed model."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=200)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    simulated = models.BooleanField(
        default=False, help_text="The reports are simulated; every page marks them."
    )
    cold_start_budget = models.FloatField(null=True, help_text="Seconds.")
    stalled_budget = models.FloatField(
        null=True, help_text="The share of calls that may wait for a compilation after warm-up."
    )
    served_budget = models.FloatField(
        null=True,
        help_text="Required share of sampled calls that are served compiled.",
    )
    lives_revision = models.BigIntegerField(
        db_default=0,
        help_text="The sum of its versions' revisions that the lives of its findings were read off "
        "at.",
    )

    class Meta:
        db_table = "model"
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="one_model_per_name")
        ]

    def __str__(self) -> str:
        return self.name


class ModelVersion(models.Model):
    """One version of a model, in all its environments."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model = models.ForeignKey(WatchedModel, on_delete=models.CASCADE, related_name="versions")
    name = models.CharField(max_length=200)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    revision = models.BigIntegerField(default=0, help_text="Rises with every fold that touched it.")
    last_minute = models.BigIntegerField(
        default=0, help_text="The newest minute with data, in minutes since 1970."
    )
    late_folds = models.BigIntegerField(
        default=0,
        help_text="Rises with every fold that touched a minute which may have been judged before.",
    )

    class Meta:
        db_table = "model_version"
        constraints = [
            models.UniqueConstraint(fields=["model", "name"], name="one_version_per_name")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_other(self) -> bool:
        """Whether the version is the collective `other` of versions over the limit."""
        return self.name == OTHER


class Deployment(models.Model):
    """Time span in which one version is live in one environment; a later rollout is another
    deployment."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model = models.ForeignKey(WatchedModel, on_delete=models.CASCADE, related_name="deployments")
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="deployments")
    environment = models.CharField(max_length=64)
    started_minute = models.BigIntegerField(
        help_text="Minutes since 1970: first minute with data, or as CI recorded."
    )
    last_minute = models.BigIntegerField(help_text="The newest minute with data.")
    ended_minute = models.BigIntegerField(
        null=True, help_text="The last minute with data, once 30 minutes passed without any."
    )
    source = models.CharField(
        max_length=16,
        default="traffic",
        choices=[("traffic", "Seen in traffic"), ("posted", "Posted by CI")],
    )

    class Meta:
        db_table = "deployment"
        constraints = [
            models.UniqueConstraint(
                fields=["version", "environment"],
                condition=models.Q(ended_minute=None),
                name="one_live_deployment",
            ),
            models.UniqueConstraint(
                fields=["version", "environment", "started_minute"], name="one_deployment_per_start"
            ),
        ]
        indexes = [
            models.Index(
                fields=["model", "environment", "started_minute"], name="deployment_by_start"
            )
        ]


class InstanceState(models.TextChoices):
    """State of an instance, derived from its reports."""

    STARTING = "starting", "starting"
    WARMING = "warming", "warming"
    HEALTHY = "healthy", "healthy"
    DEGRADED = "degraded", "degraded"
    EAGER = "eager", "eager"
    COMPILING = "compiling", "compiling"
    HUNG = "hung", "hung"
    SILENT = "silent", "silent"
    BLIND = "blind", "blind"
    ENDED = "ended", "ended"


class Instance(models.Model):
    """One process with an agent: a replica or a rank."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    instance_id = models.CharField(max_length=26)
    model = models.ForeignKey(WatchedModel, on_delete=models.CASCADE, related_name="instances")
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="instances")
    environment = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, default="serving")
    host = models.CharField(max_length=200, default="")
    node = models.CharField(
        max_length=200,
        default="",
        db_default="",
        help_text="The machine under the host; empty: the host itself.",
    )
    job = models.CharField(max_length=200, default="")
    rank = models.IntegerField(default=0)
    world_size = models.IntegerField(default=1)
    pid = models.IntegerField(null=True, help_text="Its process id on its host; NULL: not known.")
    gpu = models.CharField(max_length=100, default="")
    torch = models.CharField(max_length=64, default="")
    agent = models.CharField(max_length=64, default="")
    label = models.CharField(
        max_length=128, default="", db_default="", help_text="What its operator calls it."
    )
    role = models.CharField(
        max_length=16, default="", db_default="", help_text="A role of the wire; empty: a worker."
    )
    simulated = models.BooleanField(default=False)
    identity = models.JSONField(default=dict, help_text="The whole identity as it was last sent.")
    identity_digest = models.CharField(
        max_length=32,
        default="",
        help_text="Of the identity's bytes, so that an unchanged one is not written again.",
    )
    last_seq = models.BigIntegerField(
        default=0, help_text="An older report never replaces a newer one."
    )
    capabilities = models.JSONField(default=dict)
    components = models.JSONField(
        default=dict, help_text="A hash or version per part of the compile configuration."
    )
    started_at = models.DateTimeField(help_text="Process start, by the agent's clock.")
    first_minute = models.BigIntegerField(help_text="The first minute with data.")
    # During an upgrade, the previous release still writes instances and does not know this column.
    active_minute = models.BigIntegerField(
        null=True,
        default=None,
        db_default=0,
        help_text="The first minute with calls or compilations; NULL: it only starts; 0: from its "
        "first minute on.",
    )
    ended_at = models.DateTimeField(
        null=True, help_text="End of the last reported window of an ended process."
    )
    exit_code = models.IntegerField(null=True, help_text="NULL: not known.")
    exit_signal = models.CharField(max_length=16, default="", db_default="")
    last_minute = models.BigIntegerField(help_text="The newest minute with data.")
    live_minute = models.BigIntegerField(
        db_default=0,
        help_text="The newest of its minutes and the one it became "
        "known in, by which live instances "
        "are counted.",
    )
    last_seen_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True)
    clock_offset = models.FloatField(default=0.0, help_text="Seconds, server minus agent.")
    latched_eager = models.JSONField(
        default=list,
        help_text="Frames that run eager until the process restarts: frame, cause, at.",
    )
    compiling_for = models.FloatField(default=0.0, help_text="Seconds, from its newest report.")
    compiling_frame = models.CharField(
        max_length=512,
        default="",
        db_default="",
        help_text="What it compiles, from its newest report.",
    )
    compiling_usual = models.FloatField(
        null=True, help_text="Seconds that frame took at most before."
    )
    calls_seq = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text="The newest report that knew of calls whether they ran compiled.",
    )
    known_calls = models.BigIntegerField(default=0, db_default=0, help_text="Those calls.")
    eager_calls = models.BigIntegerField(
        default=0, db_default=0, help_text="Of them, those that ran eager."
    )
    late_windows = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text="Windows that came after their minute was closed for judging.",
    )
    merged_windows = models.BigIntegerField(default=0)
    truncated_events = models.BigIntegerField(default=0)
    spool_errors = models.BigIntegerField(default=0)
    internal_errors = models.BigIntegerField(default=0)
    rejected_windows = models.BigIntegerField(default=0)

    class Meta:
        db_table = "instance"
        constraints = [
            models.UniqueConstraint(fields=["project", "instance_id"], name="one_instance_per_id")
        ]
        indexes = [
            models.Index(fields=["version", "environment"], name="instance_by_version"),
            models.Index(fields=["project", "live_minute"], name="instance_live"),
            models.Index(
                fields=["live_minute"],
                condition=models.Q(world_size__gt=1),
                name="instance_ranks_live",
            ),
        ]


class Stratum(models.Model):
    """Calls that may be compared with each other: GPU type x mode x runtime x world size."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    gpu = models.CharField(max_length=100)
    mode = models.CharField(max_length=64)
    runtime = models.CharField(max_length=32)
    world_size = models.IntegerField()

    class Meta:
        db_table = "stratum"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "gpu", "mode", "runtime", "world_size"], name="one_stratum"
            )
        ]


class Series(models.Model):
    """Key of a minute of calls: version, environment, stratum, region and shape bucket."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="series")
    environment = models.CharField(max_length=64)
    stratum = models.ForeignKey(Stratum, on_delete=models.CASCADE, related_name="+")
    region = models.CharField(max_length=200)
    bucket = models.CharField(max_length=64)
    outermost = models.BooleanField(default=True)
    last_minute = models.BigIntegerField(default=0)

    class Meta:
        db_table = "series"
        constraints = [
            models.UniqueConstraint(
                fields=["version", "environment", "stratum", "region", "bucket", "outermost"],
                name="one_series",
            ),
        ]
        indexes = [models.Index(fields=["project", "last_minute"], name="series_live")]
