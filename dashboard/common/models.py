"""The slots that periodic jobs claim, so that two beats or none do no harm."""

from django.db import models


class JobSlot(models.Model):
    """One run of one periodic job; whoever inserts the row runs it."""

    pk = models.CompositePrimaryKey("name", "slot")
    name = models.CharField(max_length=64)
    slot = models.BigIntegerField(help_text="Unix time divided by the job's interval, rounded down.")
    claimed_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "job_slot"


class Heartbeat(models.Model):
    """The last sign of life of a worker or of beat, for the health page and for restarts."""

    name = models.CharField(max_length=128, primary_key=True)
    kind = models.CharField(max_length=16)
    seen_at = models.DateTimeField()
    folded_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "heartbeat"
