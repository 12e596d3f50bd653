"""Alerts, their time line, the channels, and the outbox of deliveries."""

from django.conf import settings
from django.db import models

from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict


class AlertState(models.TextChoices):
    """Where an alert stands."""

    OPEN = "open", "Open"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    SNOOZED = "snoozed", "Snoozed"
    RESOLVED = "resolved", "Resolved"


class Alert(models.Model):
    """One per deployment and cause."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="alerts")
    number = models.IntegerField(help_text="Counts within the project: A-418.")
    cause = models.CharField(max_length=64, default="regression")
    state = models.CharField(max_length=16, choices=AlertState.choices, default=AlertState.OPEN)
    severity = models.CharField(max_length=16, help_text="The verdict it stands for now.")
    worst = models.CharField(max_length=16, help_text="The worst verdict it ever stood for.")
    title = models.TextField()
    opened_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True)
    snoozed_until = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=32, default="", help_text="rolled_back, recovered, dismissed; empty while it is not known.")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        db_table = "alert"
        constraints = [
            models.UniqueConstraint(fields=["deployment", "cause"], condition=~models.Q(state="resolved"), name="one_open_alert_per_cause"),
            models.UniqueConstraint(fields=["project", "number"], name="alert_number_in_project"),
        ]
        indexes = [models.Index(fields=["project", "state", "-opened_at"], name="alert_by_state")]


class AlertEvent(models.Model):
    """One line of an alert's time line."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(
        max_length=32, help_text="opened, verdict, acknowledged, snoozed, resolved, dismissed, note, delivered, failed, rollback_seen."
    )
    text = models.TextField()
    verdict = models.ForeignKey(Verdict, null=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(max_length=150, default="")

    class Meta:
        db_table = "alert_event"
        indexes = [models.Index(fields=["alert", "at"], name="alert_event_by_time")]


class Channel(models.Model):
    """Where messages go. The address is a secret: it is never shown whole again."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="channels")
    kind = models.CharField(max_length=16, choices=[("slack", "Slack"), ("webhook", "Webhook"), ("email", "E-mail")])
    name = models.CharField(max_length=100)
    address = models.TextField(help_text="The webhook's URL, or a mail address.")
    secret = models.TextField(default="", help_text="What signs generic webhooks.")
    secret_previous = models.TextField(default="", help_text="The one before, while it is rotated.")
    enabled = models.BooleanField(default=True)
    disabled_reason = models.TextField(default="")
    created_at = models.DateTimeField()

    class Meta:
        db_table = "alert_channel"


class Rule(models.Model):
    """Which alerts go to which channels; a project without rules sends everything everywhere."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="rules")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="rules")
    severities = models.JSONField(default=list)
    environments = models.JSONField(default=list)
    models_named = models.JSONField(default=list)
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)
    repeat_minutes = models.IntegerField(null=True)
    escalate_minutes = models.IntegerField(null=True)

    class Meta:
        db_table = "alert_rule"


class Delivery(models.Model):
    """A message to one channel, from the moment it is owed until it is delivered or given up."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    alert = models.ForeignKey(Alert, null=True, on_delete=models.CASCADE, related_name="deliveries")
    kind = models.CharField(max_length=32, help_text="opened, changed, resolved, test.")
    message_id = models.CharField(max_length=64, unique=True)
    payload = models.JSONField()
    state = models.CharField(max_length=16, default="waiting", help_text="waiting, delivered, dead, merged.")
    attempts = models.SmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(db_index=True)
    leased_until = models.DateTimeField(null=True)
    last_status = models.IntegerField(null=True)
    last_answer = models.TextField(default="")
    created_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "alert_delivery"
        indexes = [models.Index(fields=["state", "next_attempt_at"], name="delivery_due")]


class RollbackGuide(models.Model):
    """How the owners of a model roll back: a text or URL with {version} and {baseline} filled in."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model_name = models.CharField(max_length=200)
    text = models.TextField(default="")
    url = models.URLField(default="", blank=True)

    class Meta:
        db_table = "rollback_guide"
        constraints = [models.UniqueConstraint(fields=["project", "model_name"], name="one_guide_per_model")]
