"""Command receipts: the states of commands on instances."""

from django.db import models

from dashboard.fleet.models.entities import Instance
from dashboard.projects.models import Project


class CommandReceipt(models.Model):
    """State of a command on one instance: ready, accepted, applied, ended, or refused with a
    reason."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    instance = models.ForeignKey(Instance, on_delete=models.CASCADE, related_name="receipts")
    at = models.DateTimeField()
    state = models.CharField(max_length=16, help_text="ready, accepted, applied, ended or refused.")
    command = models.CharField(max_length=64, help_text="Empty where what came was no command.")
    verb = models.CharField(max_length=16)
    counter = models.BigIntegerField()
    why = models.CharField(max_length=32)
    detail = models.CharField(max_length=200)
    callables = models.BigIntegerField(
        help_text="Compiled callables of the process that a command can reach."
    )
    refused = models.BigIntegerField(help_text="Commands that the process has refused so far.")

    class Meta:
        db_table = "command_receipt"
        constraints = [
            models.UniqueConstraint(
                fields=["instance", "command", "state", "at"], name="one_receipt_per_moment"
            )
        ]
        indexes = [models.Index(fields=["project", "command"], name="receipt_by_command")]
