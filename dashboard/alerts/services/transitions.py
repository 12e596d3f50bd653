"""Alert transitions, each with its timeline event; the caller holds the lock on the project's
row."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max

from dashboard.alerts.alert_title import build_alert_title
from dashboard.alerts.models import (
    Alert,
    AlertEvent,
    AlertOutcome,
    AlertState,
    DeliveryKind,
    EventKind,
)
from dashboard.alerts.services.enqueue import enqueue_messages
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict, VerdictKind
from dashboard.vocabulary.severity import rank_severity


def lock_project(project_id: int) -> None:
    """Blocks other workers that change alerts of this project until the transaction ends."""
    Project.objects.select_for_update(no_key=True).get(pk=project_id)


def event_add(
    *,
    alert: Alert,
    kind: EventKind,
    text: str,
    at: datetime | None = None,
    verdict: Verdict | None = None,
    actor_name: str = "",
) -> AlertEvent:
    """Adds one event to the timeline."""
    return AlertEvent.objects.create(
        alert=alert,
        at=at or clock.now(),
        kind=kind,
        text=text,
        verdict=verdict,
        actor_name=actor_name,
    )


def build_verdict_title(verdict: Verdict) -> str:
    """The title of an alert with this verdict."""
    deployment = verdict.deployment
    return build_alert_title(
        model=deployment.model.name,
        version=deployment.version.name,
        sentence=verdict.sentence,
        evidence=verdict.evidence,
    )


def alert_open(*, verdict: Verdict) -> Alert:
    """Opens the alert of a deployment, and queues its messages."""
    alert = _alert_number(verdict.deployment)
    alert.verdict, alert.severity, alert.worst, alert.title = (
        verdict,
        verdict.kind,
        verdict.kind,
        build_verdict_title(verdict),
    )
    return _alert_begin(alert, verdict.sentence)


def silence_open(*, deployment: Deployment, cause: str, title: str, text: str) -> Alert:
    """Opens the alert of instances that stopped reporting together, and queues its messages."""
    alert = _alert_number(deployment)
    alert.cause, alert.severity, alert.worst, alert.title = (
        cause,
        VerdictKind.WATCH,
        VerdictKind.WATCH,
        title,
    )
    alert.ran_on = []  # Silence alerts are not grouped.
    return _alert_begin(alert, text)


def _alert_number(deployment: Deployment) -> Alert:
    highest = Alert.objects.filter(project_id=deployment.project_id).aggregate(
        highest=Max("number")
    )["highest"]
    return Alert(
        project_id=deployment.project_id,
        deployment=deployment,
        number=(highest or 0) + 1,
        opened_at=clock.now(),
    )


def _alert_begin(alert: Alert, text: str) -> Alert:
    alert.save()
    event = event_add(
        alert=alert, kind=EventKind.OPENED, text=text, at=alert.opened_at, verdict=alert.verdict
    )
    enqueue_messages(alert=alert, event=event, kind=DeliveryKind.OPENED, verdict=alert.verdict)
    return alert


def alert_reopen(alert: Alert) -> None:
    """Reopens a snoozed alert when its time is over, and queues its messages."""
    alert.state, alert.snoozed_until = AlertState.OPEN, None
    alert.save()
    event = event_add(alert=alert, kind=EventKind.REOPENED, text="The snooze expired.")
    enqueue_messages(alert=alert, event=event, kind=DeliveryKind.CHANGED, verdict=alert.verdict)


def alert_worsen(*, alert: Alert, verdict: Verdict, urgent: bool = False) -> None:
    """Updates an alert after a worse verdict or an urgent fact. Reopens it if it was acknowledged
    or snoozed, and queues messages."""
    alert.severity, again = verdict.kind, False
    if rank_severity(verdict.kind) > rank_severity(alert.worst) or urgent:
        again = alert.state != AlertState.OPEN
        alert.worst = max(alert.worst, verdict.kind, key=rank_severity)
        alert.state, alert.snoozed_until = AlertState.OPEN, None
    alert.title = build_verdict_title(verdict)
    alert.save()
    event = event_add(alert=alert, kind=EventKind.VERDICT, text=verdict.sentence, verdict=verdict)
    if again:
        # The alert is unacknowledged again: reminders count their minutes from this event.
        event_add(
            alert=alert,
            kind=EventKind.REOPENED,
            text="Worse than when it was acknowledged or snoozed.",
        )
    if alert.state != AlertState.SNOOZED:
        enqueue_messages(alert=alert, event=event, kind=DeliveryKind.CHANGED, verdict=verdict)


def alert_close(
    *,
    alert: Alert,
    outcome: AlertOutcome,
    text: str,
    kind: EventKind = EventKind.RESOLVED,
    verdict: Verdict | None = None,
    actor_name: str = "",
) -> None:
    """Closes an alert, and notifies every channel that was notified of it."""
    alert.state, alert.outcome, alert.snoozed_until, alert.resolved_at = (
        AlertState.RESOLVED,
        outcome,
        None,
        clock.now(),
    )
    alert.save()
    event = event_add(
        alert=alert,
        kind=kind,
        text=text,
        at=alert.resolved_at,
        verdict=verdict,
        actor_name=actor_name,
    )
    enqueue_messages(
        alert=alert,
        event=event,
        kind=DeliveryKind.RESOLVED,
        verdict=verdict or alert.verdict,
        news=text,
    )
