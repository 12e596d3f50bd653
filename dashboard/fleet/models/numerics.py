"""Parity results: results of golden batches on instances."""

from django.db import models

from dashboard.fleet.models.entities import Instance
from dashboard.projects.models import Project


class ParityResult(models.Model):
    """Latest result of one golden batch on one instance."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    instance = models.ForeignKey(Instance, on_delete=models.CASCADE, related_name="parities")
    name = models.CharField(max_length=200)
    state = models.CharField(max_length=16, help_text="passed, failed or not compared.")
    at = models.DateTimeField(help_text="Time of the last report.")
    failed_at = models.DateTimeField(null=True, help_text="When it failed first on this instance.")
    told = models.JSONField(
        default=dict,
        help_text="The data of the agent's fact: errors, tolerance, counts; never a value.",
    )

    class Meta:
        db_table = "parity_result"
        constraints = [
            models.UniqueConstraint(fields=["instance", "name"], name="one_parity_per_name")
        ]
