"""Reached limits: cardinality limits that a project reached, per day."""

from django.db import models

from dashboard.projects.models import Project

COUNTER = "counter"
LIMIT_KINDS = ("environment", "series", "version", "instance", "finding", COUNTER)


class LimitReached(models.Model):
    """A limit reached on one day: names counted under `other`, or a saturated counter."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=16, choices=[(kind, kind) for kind in LIMIT_KINDS])
    day = models.IntegerField(help_text="Days since 1970.")
    count = models.BigIntegerField(
        default=0, help_text="How often a fold met a name there was no room for."
    )
    example = models.CharField(max_length=200, default="", help_text="The last of them.")
    last_at = models.DateTimeField()

    class Meta:
        db_table = "limit_reached"
        constraints = [
            models.UniqueConstraint(fields=["project", "kind", "day"], name="one_limit_per_day")
        ]
