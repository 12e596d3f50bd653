"""Models of every stage: job slots, heartbeats, totals and cache entries."""

from django.db import models


class JobSlot(models.Model):
    """One run of a periodic job; the process that inserts the row runs the job."""

    pk = models.CompositePrimaryKey("name", "slot")
    name = models.CharField(max_length=64)
    slot = models.BigIntegerField(
        help_text="Unix time divided by the job's interval, rounded down."
    )
    claimed_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "job_slot"


class Heartbeat(models.Model):
    """The last heartbeat of a worker, for the health page and for restarts."""

    name = models.CharField(max_length=128, primary_key=True)
    kind = models.CharField(max_length=16)
    seen_at = models.DateTimeField()
    folded_at = models.DateTimeField(null=True)
    broker = models.CharField(
        max_length=200,
        default="",
        db_default="",
        help_text="Why Redis is unavailable to this process; empty if Redis responds.",
    )

    class Meta:
        db_table = "heartbeat"


class Total(models.Model):
    """A sum since the beginning, such as accepted reports.

    Rows are never deleted, because Prometheus reads any decrease as a restart.
    """

    pk = models.CompositePrimaryKey("name", "label")
    name = models.CharField(max_length=32)
    label = models.CharField(
        max_length=32, help_text="A code or a stage; empty where there is one sum."
    )
    value = models.FloatField()

    class Meta:
        db_table = "total"


class CacheEntry(models.Model):
    """A row of Django's database cache: counters of sign-in attempts, shared by all processes."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "cache_entry"
