"""Models of kill switches: the request, its state, and the events."""

from django.conf import settings
from django.db import models

from dashboard.fleet.models import ModelVersion
from dashboard.projects.models import Project


class SwitchPhase(models.TextChoices):
    """Phase of the current stage."""

    ASKING = "asking", "Asking instances to accept"
    GOING = "going", "Waiting for all instances to apply it"
    WATCHING = "watching", "Active"
    OVER = "over", "Ended"


class Switch(models.Model):
    """One verb on one version in one environment; code that changes a row must hold the lock on the
    project's row."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="switches")
    environment = models.CharField(max_length=64)
    verb = models.CharField(max_length=16, choices=[("freeze", "Freeze"), ("eager", "Eager")])
    ident = models.CharField(max_length=16, unique=True, help_text="Prefix of its command IDs.")
    note = models.TextField()
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    asked_by_name = models.CharField(max_length=150)
    wanted_until = models.DateTimeField()
    phase = models.CharField(max_length=16, choices=SwitchPhase.choices, default=SwitchPhase.ASKING)
    phase_since = models.DateTimeField()
    share = models.FloatField(default=0.0, help_text="Share of instances in the current stage.")
    held_share = models.FloatField(
        default=0.0, help_text="Share of instances on which it is active."
    )
    command = models.CharField(max_length=64, default="", help_text="ID of the newest command.")
    expires_at = models.DateTimeField(
        null=True, help_text="Expiry of that command unless it is renewed."
    )
    before = models.JSONField(
        default=dict, help_text="p95, memory and errors in the minutes before the request."
    )
    ended_at = models.DateTimeField(null=True)
    ended_why = models.TextField(default="")

    class Meta:
        db_table = "switch"
        constraints = [
            models.UniqueConstraint(
                fields=["version", "environment"],
                condition=models.Q(ended_at=None),
                name="one_switch_at_a_time",
            ),
        ]
        indexes = [
            models.Index(fields=["version", "environment", "-asked_at"], name="switch_by_version")
        ]


class SwitchEvent(models.Model):
    """One event of a kill switch."""

    switch = models.ForeignKey(Switch, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    text = models.TextField()
    actor_name = models.CharField(max_length=150, default="", help_text="Empty: by the dashboard.")

    class Meta:
        db_table = "switch_event"
