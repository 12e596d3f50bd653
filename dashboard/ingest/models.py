"""Models of ingest: senders, the inbox, commands, and quarantined reports. Primary keys begin with
the project."""

from django.db import models

from dashboard.ingest.batch import SHARDS as SHARDS
from dashboard.projects.models import Project


class Sender(models.Model):
    """One instance as the endpoint knows it, with its durable sequence ranges."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    instance_id = models.CharField(max_length=26)
    ranges = models.JSONField(
        default=list, help_text="Sorted [first, last] pairs, normally one, at most 64."
    )
    closed = models.JSONField(
        default=list, help_text="Gaps that were given up, sorted [first, last] pairs, at most 64."
    )
    missing = models.BigIntegerField(
        default=0, help_text="Sequence numbers in gaps that were closed for good."
    )
    recent = models.BinaryField(
        null=True, help_text="Digests of the last 16 reports; NULL: an earlier release stored them."
    )
    clock_offset = models.FloatField(
        default=0.0, help_text="Server time minus agent time in seconds, as of the last request."
    )
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        db_table = "ingest_sender"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "instance_id"], name="one_sender_per_instance"
            )
        ]


class InboxRow(models.Model):
    """One acknowledged report that waits to be folded. The fold that counts the report deletes the
    row."""

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    shard = models.SmallIntegerField(
        help_text="crc32 of project, model and version, modulo 64: "
        "a shard has one folder at a time."
    )
    instance_id = models.CharField(max_length=26)
    seq_first = models.BigIntegerField()
    seq_last = models.BigIntegerField()
    received_at = models.DateTimeField()
    clock_offset = models.FloatField(
        help_text="Server time minus agent time in seconds, measured in this request."
    )
    identity = models.BinaryField(help_text="The request's `instance` as JSON text.")
    report = models.BinaryField(help_text="The report as JSON text.")

    class Meta:
        db_table = "ingest_inbox"
        indexes = [
            models.Index(fields=["shard", "id"], name="inbox_by_shard"),
            models.Index(fields=["project", "shard", "id"], name="inbox_by_project"),
        ]


class FoldAttempt(models.Model):
    """A fold in progress: committed before the fold, deleted inside the fold. A row that remains
    names the reports that kill a worker."""

    shard = models.SmallIntegerField()
    project_id = models.BigIntegerField(
        null=True,
        help_text="Whose rows; NULL: all rows of the range, as earlier releases took them.",
    )
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    started_at = models.DateTimeField()
    attempts = models.SmallIntegerField(default=1)
    worker = models.CharField(max_length=128, default="")

    class Meta:
        db_table = "ingest_fold_attempt"
        constraints = [
            models.UniqueConstraint(
                fields=["shard", "first_id", "last_id"], name="one_attempt_per_range"
            )
        ]


class PoisonReport(models.Model):
    """A report that could not be folded in three attempts, with its error. `manage.py refold`
    returns it to the inbox."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    shard = models.SmallIntegerField()
    instance_id = models.CharField(max_length=26)
    seq_first = models.BigIntegerField()
    seq_last = models.BigIntegerField()
    received_at = models.DateTimeField()
    clock_offset = models.FloatField()
    identity = models.BinaryField()
    report = models.BinaryField()
    set_aside_at = models.DateTimeField()
    error = models.TextField()

    class Meta:
        db_table = "ingest_poison"


class Refusal(models.Model):
    """Number of refused requests and reports, by code and hour. The health page shows them."""

    pk = models.CompositePrimaryKey("project_id", "hour", "code")
    project_id = models.BigIntegerField(help_text="0 when the key named no project.")
    hour = models.BigIntegerField(help_text="Hours since 1970.")
    code = models.CharField(max_length=32)
    count = models.BigIntegerField(default=0)

    class Meta:
        db_table = "ingest_refusal"


class Intake(models.Model):
    """Number of acknowledged reports and their bytes, by hour. The health page draws them."""

    pk = models.CompositePrimaryKey("project_id", "hour")
    project_id = models.BigIntegerField()
    hour = models.BigIntegerField(help_text="Hours since 1970.")
    reports = models.BigIntegerField(default=0, help_text="One that is sent again counts again.")
    bytes = models.BigIntegerField(default=0, help_text="As they came over the wire.")

    class Meta:
        db_table = "ingest_intake"


class Command(models.Model):
    """A signed command to instances. The answer to a report carries it; it expires
    automatically."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    verb = models.CharField(
        max_length=16,
        choices=[
            ("freeze", "No new compilations"),
            ("eager", "Run eager"),
            ("restore", "As before"),
        ],
    )
    model_name = models.CharField(max_length=200)
    version_name = models.CharField(max_length=200)
    target = models.JSONField(
        default=dict,
        help_text="Which environment, and which share of its instances or which of them.",
    )
    counter = models.BigIntegerField()
    signed = models.BinaryField()
    signatures = models.JSONField(
        null=True, help_text="Ed25519 signatures by public key; NULL: an earlier release issued it."
    )
    issued_at = models.DateTimeField()
    not_before = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    issued_by_name = models.CharField(max_length=150)
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "ingest_command"
        constraints = [
            models.UniqueConstraint(fields=["project", "counter"], name="command_counter_rises")
        ]


class EngineTarget(models.Model):
    """An engine without an agent. A worker reads its /metrics; operators add it with manage.py
    scrape."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    url = models.CharField(max_length=500)
    engine = models.CharField(max_length=16, choices=[("vllm", "vLLM"), ("sglang", "SGLang")])
    model_name = models.CharField(max_length=200)
    version_name = models.CharField(max_length=200)
    environment = models.CharField(max_length=64, default="production")
    gpu = models.CharField(max_length=100, default="")
    created_at = models.DateTimeField()
    tried_at = models.FloatField(default=0.0, help_text="Unix seconds of the last try.")
    read_at = models.FloatField(null=True, help_text="Unix seconds of the last reading.")
    started = models.FloatField(
        null=True,
        help_text="Unix seconds: start of the running engine, if it reports one.",
    )
    next_seq = models.BigIntegerField(
        default=1, help_text="Next report number of the engine's instance."
    )
    counted = models.JSONField(null=True, help_text="What the last reading had counted.")
    log = models.JSONField(
        default=dict, help_text="Seconds per stage in the start-up log of the running engine."
    )
    trouble = models.TextField(
        default="", help_text="Why nothing, or not all, can be read; empty when all is well."
    )

    class Meta:
        db_table = "ingest_engine"
        constraints = [
            models.UniqueConstraint(fields=["project", "url"], name="one_engine_per_address")
        ]


class BucketLayout(models.Model):
    """Bounds of the buckets of an engine's histogram, by the name of the shape bucket. The judge
    reads their widths."""

    name = models.CharField(max_length=64, primary_key=True)
    bounds = models.JSONField(
        help_text="Upper bounds in seconds, in order; the last may be null, which is no bound."
    )

    class Meta:
        db_table = "ingest_bucket_layout"
