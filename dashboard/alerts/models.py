"""Alerts, their time line, the channels, the outbox of deliveries, and the switch."""

from django.conf import settings
from django.db import models

from dashboard.alerts.kill_switch.models import Switch as Switch
from dashboard.alerts.kill_switch.models import SwitchEvent as SwitchEvent
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict


class AlertState(models.TextChoices):
    """Where an alert stands."""

    OPEN = "open", "Open"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    SNOOZED = "snoozed", "Snoozed"
    RESOLVED = "resolved", "Resolved"


class AlertCause:
    """What an alert is about."""

    REGRESSION = "regression"
    """Follows the verdicts of its deployment."""
    SILENCE = "silence"
    """More than half of a model's instances stopped reporting together; its deployment is the one
    that most of them run."""
    FLEET_SILENCE = "fleet_silence"
    """The same of a whole project; its deployment is one of many."""
    SILENT = (SILENCE, FLEET_SILENCE)


class AlertOutcome(models.TextChoices):
    """How an alert ended."""

    ROLLED_BACK = "rolled_back", "Rolled back"
    REPLACED = "replaced", "Replaced by a later version"
    STOPPED = "stopped", "No traffic any more"
    RECOVERED = "recovered", "Recovered by itself"
    RESOLVED = "resolved", "Resolved by a person"
    DISMISSED = "dismissed", "False alarm"
    ACCEPTED = "accepted", "Accepted as the new normal"


class EventKind(models.TextChoices):
    """What a line of the time line tells."""

    OPENED = "opened", "Opened"
    VERDICT = "verdict", "Verdict changed"
    EVIDENCE = "evidence", "More evidence"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    SNOOZED = "snoozed", "Snoozed"
    REOPENED = "reopened", "Open again"
    RESOLVED = "resolved", "Resolved"
    DISMISSED = "dismissed", "False alarm"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Not delivered"
    GROUPED = "grouped", "Together with others"
    REPEATED = "repeated", "Said again"
    ESCALATED = "escalated", "Escalated"
    ROLLBACK_SEEN = "rollback_seen", "Rolled back"
    LEVEL_BACK = "level_back", "The old level is back"
    LEVEL_NOT_BACK = "level_not_back", "Rolling back did not help"
    LEVEL_UNKNOWN = "level_unknown", "Recovery not known"


class AlertGroup(models.Model):
    """Alerts of several versions that came together and share what they run on; each keeps its own
    life."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    title = models.TextField(help_text="What they share, in words, with how many they are.")
    shared = models.JSONField(
        default=list, help_text="What they share: kind, name, and how many alerts do."
    )
    opened_at = models.DateTimeField(help_text="When the first of them opened.")

    class Meta:
        db_table = "alert_group"


class Alert(models.Model):
    """One per deployment and cause; whoever changes it holds its project's row."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="alerts")
    number = models.IntegerField(help_text="Counts within the project: A-418.")
    cause = models.CharField(max_length=64, default=AlertCause.REGRESSION)
    state = models.CharField(max_length=16, choices=AlertState.choices, default=AlertState.OPEN)
    verdict = models.ForeignKey(
        Verdict,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The newest one in the time line.",
    )
    severity = models.CharField(
        max_length=16, help_text="The bad verdict it stands for: WATCH or ROLL BACK."
    )
    worst = models.CharField(max_length=16, help_text="The worst verdict it ever stood for.")
    title = models.TextField()
    opened_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True)
    snoozed_until = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    outcome = models.CharField(
        max_length=32,
        default="",
        choices=AlertOutcome.choices,
        help_text="Empty while it is not known.",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    group = models.ForeignKey(
        AlertGroup, null=True, on_delete=models.SET_NULL, related_name="alerts"
    )
    ran_on = models.JSONField(
        null=True, help_text="What it ran on when it opened; None until that was looked at."
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
    """One line of an alert's time line."""

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
    """Where messages go. The address is a secret: it is never shown whole again."""

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
    address = models.TextField(help_text="The webhook's URL, or a mail address.")
    secret = models.TextField(default="", help_text="What signs generic webhooks.")
    secret_previous = models.TextField(default="", help_text="The one before, while it is rotated.")
    enabled = models.BooleanField(default=True)
    disabled_reason = models.TextField(default="")
    not_before = models.DateTimeField(
        null=True, help_text="The next moment it may be sent to: its pace, or what it asked for."
    )
    created_at = models.DateTimeField()

    class Meta:
        db_table = "alert_channel"


class Rule(models.Model):
    """Which alerts go to which channels, an empty list meaning any; a project without rules sends
    ROLL BACK, and ranks that went apart, to every channel."""

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
        default=True, db_default=True, help_text="Whether ROLL BACK is sent in quiet hours, too."
    )

    class Meta:
        db_table = "alert_rule"


class MaintenanceWindow(models.Model):
    """A time in which messages wait: of one environment or model or, where that is empty, of
    any."""

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
    """How far a message got."""

    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    DEAD = "dead", "Given up"
    MERGED = "merged", "Merged into a later message"
    HELD = "held", "Held back"


class DeliveryKind(models.TextChoices):
    """What a message is about."""

    OPENED = "opened", "Opened"
    CHANGED = "changed", "Changed"
    RESOLVED = "resolved", "Resolved"
    TEST = "test", "Test"
    REPEATED = "repeated", "Said again"
    ESCALATED = "escalated", "Escalated"
    DIGEST = "digest", "Several alerts"


class Delivery(models.Model):
    """A message to one channel, from the moment it is owed until it is delivered or given up."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    alert = models.ForeignKey(Alert, null=True, on_delete=models.CASCADE, related_name="deliveries")
    kind = models.CharField(max_length=32, choices=DeliveryKind.choices)
    message_id = models.CharField(
        max_length=64,
        unique=True,
        help_text="Made from alert, channel and event: the same event is owed once.",
    )
    facts = models.JSONField(
        help_text="What there is to tell, as it was when the event happened; the channel puts it "
        "into words."
    )
    state = models.CharField(
        max_length=16, default=DeliveryState.WAITING, choices=DeliveryState.choices
    )
    attempts = models.SmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    leased_until = models.DateTimeField(null=True)
    held_until = models.DateTimeField(
        null=True, help_text="Until when it was held back, if it was."
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
    """One try to deliver a message; a try without an end was cut off with its worker."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="tries")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    status = models.IntegerField(null=True)
    answer = models.TextField(default="")

    class Meta:
        db_table = "alert_delivery_attempt"


class RollbackGuide(models.Model):
    """How the owners of a model roll back: a text or URL with {version} and {baseline} filled
    in."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model_name = models.CharField(max_length=200)
    text = models.TextField(default="")
    url = models.URLField(default="", blank=True)

    class Meta:
        db_table = "rollback_guide"
        constraints = [
            models.UniqueConstraint(fields=["project", "model_name"], name="one_guide_per_model")
        ]
