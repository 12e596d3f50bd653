"""Events: compilations, cold starts, and findings."""

from django.db import models

from dashboard.fleet.models.entities import Instance, ModelVersion, WatchedModel
from dashboard.projects.models import Project


class CompileEvent(models.Model):
    """One compilation of one instance."""

    pk = models.CompositePrimaryKey("project_id", "day", "instance_id", "seq", "number")
    project_id = models.BigIntegerField()
    day = models.IntegerField(help_text="Days since 1970.")
    instance_id = models.BigIntegerField(help_text="Instance.id")
    seq = models.BigIntegerField(help_text="First sequence number of the report it came in.")
    number = models.SmallIntegerField(help_text="Its place in that report.")
    version_id = models.BigIntegerField(help_text="ModelVersion.id")
    environment = models.CharField(max_length=64)
    at = models.DateTimeField()
    compile_id = models.CharField(max_length=64)
    frame = models.CharField(max_length=512)
    file = models.CharField(max_length=512)
    line = models.IntegerField()
    kind = models.CharField(max_length=16)
    reason = models.TextField(default="")
    outcome = models.CharField(max_length=16)
    total = models.FloatField(null=True, help_text="Seconds.")
    phases = models.JSONField(default=dict, help_text="Exclusive seconds per phase.")
    cache_fx = models.CharField(max_length=8, default="")
    cache_aot = models.CharField(max_length=8, default="")
    cache_autotune = models.CharField(max_length=8, default="", db_default="")
    cache_bundle = models.CharField(
        max_length=8,
        default="",
        db_default="",
        help_text="Triton kernels that travel with a cached graph.",
    )
    cache_mega = models.CharField(
        max_length=8,
        default="",
        db_default="",
        help_text="Loaded by torch.compiler.load_cache_artifacts.",
    )
    cache_key = models.CharField(
        max_length=32,
        default="",
        db_default="",
        help_text="The same in every process that asked for the same.",
    )
    miss = models.CharField(
        max_length=200,
        default="",
        db_default="",
        help_text="Why it was not in the cache, by the agent's own comparison.",
    )
    saved = models.FloatField(null=True)
    new_peak = models.BigIntegerField(null=True)
    in_request = models.BooleanField(default=False)
    reason_kind = models.CharField(
        max_length=16, default="", db_default="", help_text="guard, race, limit, failure, or empty."
    )
    backend = models.CharField(max_length=64, default="", db_default="")
    mode = models.CharField(max_length=64, default="", db_default="")
    dynamic = models.CharField(
        max_length=16,
        default="",
        db_default="",
        help_text="automatic, yes, no, or empty: not known.",
    )
    fullgraph = models.BooleanField(null=True)
    entries = models.IntegerField(
        null=True, help_text="Cache entries that its code object held afterwards."
    )
    entry_limit = models.IntegerField(
        null=True, help_text="How many it may hold; NULL: nothing limits it, or that is not known."
    )

    class Meta:
        db_table = "compile_event"
        indexes = [models.Index(fields=["version_id", "at"], name="compile_event_by_version")]


class ColdStart(models.Model):
    """Time from process start to the first compiled call, with the unaccounted part."""

    instance = models.OneToOneField(
        Instance, on_delete=models.CASCADE, primary_key=True, related_name="cold_start"
    )
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="+")
    started_at = models.DateTimeField()
    first_compile_at = models.DateTimeField(null=True)
    first_call_at = models.DateTimeField(null=True)
    ready_at = models.DateTimeField(null=True)
    total = models.FloatField(
        null=True, help_text="Seconds from process start to ready, or to the first steady call."
    )
    phases = models.JSONField(
        default=dict,
        help_text="Marks and reported stages, else two derived from the reports.",
    )
    unaccounted = models.FloatField(null=True)

    class Meta:
        db_table = "cold_start"


class Finding(models.Model):
    """Group of similar events of a model, identified by the fingerprint of its text and
    location."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model = models.ForeignKey(WatchedModel, on_delete=models.CASCADE, related_name="findings")
    kind = models.CharField(
        max_length=32, help_text="A finding kind of the wire, or latched_eager, oom."
    )
    fingerprint = models.CharField(max_length=32)
    text = models.TextField()
    where = models.CharField(max_length=600, default="")
    state = models.CharField(
        max_length=16, default="new", help_text="Written by releases before FindingLife alone."
    )
    first_version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="+")
    last_version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="+")
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    count = models.BigIntegerField(default=0)
    values = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="Values that a guard met.",
    )
    distinct = models.IntegerField(
        default=0,
        db_default=0,
        help_text="How many one process met at most; 0: it is not about values.",
    )
    pattern = models.CharField(
        max_length=24, default="", db_default="", help_text="How they vary, a pattern of the wire."
    )
    made_day = models.IntegerField(db_default=0, help_text="Days since 1970: when it became known.")

    class Meta:
        db_table = "finding"
        constraints = [
            models.UniqueConstraint(
                fields=["model", "kind", "fingerprint"], name="one_finding_per_fingerprint"
            )
        ]
        indexes = [models.Index(fields=["project", "made_day"], name="finding_by_day")]


class FindingLife(models.Model):
    """State of a finding in one environment.

    A job derives the state from sightings and deployments (`fold/finding_state.py`).
    """

    finding = models.ForeignKey(Finding, on_delete=models.CASCADE, related_name="lives")
    environment = models.CharField(max_length=64)
    state = models.CharField(
        max_length=16, choices=[(s, s) for s in ("new", "ongoing", "gone", "back")]
    )
    since_minute = models.BigIntegerField(help_text="Minutes since 1970.")
    first_version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="+")
    last_version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="+")

    class Meta:
        db_table = "finding_life"
        constraints = [
            models.UniqueConstraint(fields=["finding", "environment"], name="one_finding_life")
        ]


class FindingVersion(models.Model):
    """Occurrences of a finding in one version and environment."""

    finding = models.ForeignKey(Finding, on_delete=models.CASCADE, related_name="versions")
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="findings")
    environment = models.CharField(max_length=64)
    count = models.BigIntegerField(default=0)
    seconds = models.FloatField(
        default=0.0, db_default=0.0, help_text="What it cost together, where that is known."
    )
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        db_table = "finding_version"
        constraints = [
            models.UniqueConstraint(
                fields=["finding", "version", "environment"], name="one_finding_version"
            )
        ]


class FindingInstance(models.Model):
    """Occurrences of a finding on one instance, for the number of affected instances."""

    finding = models.ForeignKey(Finding, on_delete=models.CASCADE, related_name="instances")
    instance = models.ForeignKey(Instance, on_delete=models.CASCADE, related_name="findings")
    count = models.BigIntegerField(default=0)
    seconds = models.FloatField(
        default=0.0, db_default=0.0, help_text="What it cost together, where that is known."
    )
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        db_table = "finding_instance"
        constraints = [
            models.UniqueConstraint(fields=["finding", "instance"], name="one_finding_instance")
        ]
