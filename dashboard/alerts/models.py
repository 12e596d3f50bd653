"""Models of alerts: alerts, timelines, channels, the outbox of deliveries, rules and kill
switches."""

from django.conf import settings
from django.db import models

from dashboard.alerts.kill_switch.models import Switch as Switch
from dashboard.alerts.kill_switch.models import SwitchEvent as SwitchEvent
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict


class AlertState(models.TextChoices):
    """State of an alert."""

    OPEN = "open", "Open"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    SNOOZED = "snoozed", "Snoozed"
    RESOLVED = "resolved", "Resolved"


class AlertCause:
    """Subject of an alert."""

    REGRESSION = "regression"
    """Follows the verdicts of its deployment."""
    SILENCE = "silence"
    """More than half of a model's instances stopped reporting together. The deployment is the one
    with most of these instances."""
    FLEET_SILENCE = "fleet_silence"
    """More than half of a project's instances stopped reporting together. The deployment is one of
    the affected ones."""
    SILENT = (SILENCE, FLEET_SILENCE)


class AlertOutcome(models.TextChoices):
    """Outcome of an alert."""

    ROLLED_BACK = "rolled_back", "Rolled back"
    REPLACED = "replaced", "Replaced by a later version"
    STOPPED = "stopped", "Traffic stopped"
    RECOVERED = "recovered", "Auto-recovered"
    RESOLVED = "resolved", "Resolved manually"
    DISMISSED = "dismissed", "False positive"
    ACCEPTED = "accepted", "Accepted as new baseline"


class EventKind(models.TextChoices):
    """Kind of a timeline event."""

    OPENED = "opened", "Opened"
    VERDICT = "verdict", "Verdict changed"
    EVIDENCE = "evidence", "More evidence"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    SNOOZED = "snoozed", "Snoozed"
    REOPENED = "reopened", "Reopened"
    RESOLVED = "resolved", "Resolved"
    DISMISSED = "dismissed", "False positive"
    UNDONE = "undone", "Undone"
    NOTE = "note", "Note"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Not delivered"
    GROUPED = "grouped", "Related alerts"
    REPEATED = "repeated", "Reminder sent"
    ESCALATED = "escalated", "Escalated"
    ROLLBACK_SEEN = "rollback_seen", "Rolled back"
    LEVEL_BACK = "level_back", "Recovered"
    LEVEL_NOT_BACK = "level_not_back", "Not recovered"
    LEVEL_UNKNOWN = "level_unknown", "Recovery unknown"


class AlertGroup(models.Model):
    """Alerts of several versions that opened together and share an environment; each alert keeps
    its own state."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    title = models.TextField(help_text="Number of alerts, and the traits they share.")
    shared = models.JSONField(
        default=list, help_text="Shared traits: kind, name and number of alerts."
    )
    opened_at = models.DateTimeField(help_text="Opening time of the first alert.")

    class Meta:
        db_table = "alert_group"


class Alert(models.Model):
    """One alert per deployment and cause; code that changes a row must hold the lock on the
    project's row."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="alerts")
    number = models.IntegerField(help_text="Number within the project: A-418.")
    cause = models.CharField(max_length=64, default=AlertCause.REGRESSION)
    state = models.CharField(max_length=16, choices=AlertState.choices, default=AlertState.OPEN)
    verdict = models.ForeignKey(
        Verdict,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The newest verdict in the timeline.",
    )
    severity = models.CharField(max_length=16, help_text="Current severity: WATCH or ROLL BACK.")
    worst = models.CharField(max_length=16, help_text="The worst severity so far.")
    title = models.TextField()
    opened_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True)
    snoozed_until = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    outcome = models.CharField(
        max_length=32,
        default="",
        choices=AlertOutcome.choices,
        help_text="Empty while the alert is unresolved.",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    group = models.ForeignKey(
        AlertGroup, null=True, on_delete=models.SET_NULL, related_name="alerts"
    )
    ran_on = models.JSONField(
        null=True, help_text="Environment traits when the alert opened; None until they are read."
    )

    class Meta:
        db_table = "alert"
        constraints = [
            models.UniqueConstraint(
                fields=["deployment", "cause"],
                condition=~models.Q(state="resolved"),
                name="one_open_alert_per_cause",
            ),
            models.UniqueConstraint(fields=["project", "number"], name="alert_number_in_project"),
        ]
        indexes = [
            models.Index(fields=["project", "state", "-opened_at"], name="alert_by_state"),
            models.Index(fields=["opened_at"], name="alert_by_opening"),
        ]


class AlertEvent(models.Model):
    """One event in the timeline of an alert."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=32, choices=EventKind.choices)
    text = models.TextField()
    verdict = models.ForeignKey(Verdict, null=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(max_length=150, default="")

    class Meta:
        db_table = "alert_event"
        constraints = [
            models.UniqueConstraint(
                fields=["alert", "kind", "verdict"], name="one_event_per_verdict"
            )
        ]
        indexes = [models.Index(fields=["alert", "at"], name="alert_event_by_time")]


class Channel(models.Model):
    """Destination of notifications. The address is a secret and is never shown in full again."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="channels")
    kind = models.CharField(
        max_length=16,
        choices=[
            ("slack", "Slack"),
            ("webhook", "Webhook"),
            ("cloudevents", "Webhook, CloudEvents"),
            ("email", "E-mail"),
            ("apprise", "Apprise"),
        ],
    )
    name = models.CharField(max_length=100)
    address = models.TextField(help_text="URL of the webhook, or a mail address.")
    secret = models.TextField(default="", help_text="Signing secret of generic webhooks.")
    secret_previous = models.TextField(default="", help_text="Previous secret, during a rotation.")
    enabled = models.BooleanField(default=True)
    disabled_reason = models.TextField(default="")
    not_before = models.DateTimeField(
        null=True, help_text="Earliest time of the next message, by pace or Retry-After."
    )
    created_at = models.DateTimeField()

    class Meta:
        db_table = "alert_channel"


class Rule(models.Model):
    """Maps alerts to channels; an empty list matches everything. A project without rules sends ROLL
    BACK and diverged ranks to every channel."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="rules")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="rules")
    severities = models.JSONField(default=list)
    environments = models.JSONField(default=list)
    models_named = models.JSONField(default=list)
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)
    repeat_minutes = models.IntegerField(null=True)
    escalate_minutes = models.IntegerField(null=True)
    escalate_to = models.ForeignKey(Channel, null=True, on_delete=models.SET_NULL, related_name="+")
    roll_back_passes = models.BooleanField(
        default=True, db_default=True, help_text="True if ROLL BACK alerts ignore quiet hours."
    )

    class Meta:
        db_table = "alert_rule"


class MaintenanceWindow(models.Model):
    """A period in which messages are held; an empty environment or model matches everything."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    environment = models.CharField(max_length=64, default="", blank=True)
    model_name = models.CharField(max_length=200, default="", blank=True)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    note = models.CharField(max_length=200, default="", blank=True)
    made_by_name = models.CharField(max_length=150)

    class Meta:
        db_table = "alert_maintenance"
        indexes = [models.Index(fields=["project", "ends_at"], name="maintenance_by_end")]


class DeliveryState(models.TextChoices):
    """State of a message."""

    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    DEAD = "dead", "Failed"
    MERGED = "merged", "Merged into a later notification"
    HELD = "held", "On hold"


class DeliveryKind(models.TextChoices):
    """Subject of a message."""

    OPENED = "opened", "Opened"
    CHANGED = "changed", "Changed"
    RESOLVED = "resolved", "Resolved"
    TEST = "test", "Test"
    REPEATED = "repeated", "Reminder"
    ESCALATED = "escalated", "Escalated"
    DIGEST = "digest", "Several alerts"


class Delivery(models.Model):
    """A message to one channel, from the moment it is queued until it is delivered or has
    failed."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    alert = models.ForeignKey(Alert, null=True, on_delete=models.CASCADE, related_name="deliveries")
    kind = models.CharField(max_length=32, choices=DeliveryKind.choices)
    message_id = models.CharField(
        max_length=64,
        unique=True,
        help_text="Hash of alert, channel and event: one message per event and channel.",
    )
    facts = models.JSONField(
        help_text="Payload at the time of the event; the channel turns it into text."
    )
    state = models.CharField(
        max_length=16, default=DeliveryState.WAITING, choices=DeliveryState.choices
    )
    attempts = models.SmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    leased_until = models.DateTimeField(null=True)
    held_until = models.DateTimeField(
        null=True, help_text="End of the hold, if the message was held."
    )
    last_status = models.IntegerField(null=True)
    last_answer = models.TextField(default="")
    created_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "alert_delivery"
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(
                fields=["channel", "id"],
                condition=models.Q(state="waiting"),
                name="delivery_waiting",
            ),
            models.Index(fields=["project", "-created_at"], name="delivery_by_project"),
            models.Index(
                fields=["held_until"], condition=models.Q(state="held"), name="delivery_held"
            ),
        ]


class DeliveryAttempt(models.Model):
    """One attempt to deliver a message; an attempt without an end was interrupted with its
    worker."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="tries")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    status = models.IntegerField(null=True)
    answer = models.TextField(default="")

    class Meta:
        db_table = "alert_delivery_attempt"


class RollbackGuide(models.Model):
    """Rollback runbook of a model: a text or a URL with placeholders {version} and {baseline}."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model_name = models.CharField(max_length=200)
    text = models.TextField(default="")
    url = models.URLField(default="", blank=True)

    class Meta:
        db_table = "rollback_guide"
        constraints = [
            models.UniqueConstraint(fields=["project", "model_name"], name="one_guide_per_model")
        ]
