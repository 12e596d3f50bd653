"""Undo: restores the alert as it was before a person's last action, from the audit entry of that
action. Both changes stay in the timeline and in the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from dashboard.accounts.models import AuditEntry, User
from dashboard.accounts.services import audit_write
from dashboard.alerts.models import Alert, AlertOutcome, AlertState, DeliveryKind, EventKind
from dashboard.alerts.services.actions import AlertActionError, audit_subject, describe_state
from dashboard.alerts.services.enqueue import enqueue_messages
from dashboard.alerts.services.transitions import event_add, lock_project
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.regressions.baseline_choices import baseline_choice_end, baseline_choose
from dashboard.regressions.models import BaselineChoice

UNDO_MINUTES = 10
"""For how long an action can be undone; the page offers it for ten seconds."""
ACTIONS = {
    "alert.acknowledge": "acknowledgement",
    "alert.snooze": "snooze",
    "alert.resolve": "resolution",
    "alert.dismiss": "false positive",
    "alert.accept": "acceptance",
}


def alert_undo(*, alert: Alert, user: User, address: str | None = None) -> Alert:
    """Reverses the last action on the alert, if the same person took it within UNDO_MINUTES and
    the alert has not changed since."""
    with write_transaction():
        lock_project(alert.project_id)
        held = Alert.objects.select_related(
            "deployment__model", "deployment__version", "project", "verdict"
        ).get(pk=alert.pk)
        entry = _find_action(held, user)
        before: Mapping[str, Any] = entry.before or {}
        current = describe_state(held)
        if held.state == AlertState.RESOLVED and _has_open_twin(held):
            raise AlertActionError(
                "", f"A-{held.number} cannot be reopened: a newer alert of this version is open."
            )
        closed = held.state == AlertState.RESOLVED
        _restore(held, before)
        held.save()
        event = event_add(
            alert=held,
            kind=EventKind.UNDONE,
            text=f"The {ACTIONS[entry.action]} was undone.",
            actor_name=user.get_username(),
        )
        if closed:
            enqueue_messages(
                alert=held, event=event, kind=DeliveryKind.CHANGED, verdict=held.verdict
            )
        audit_write(
            action="alert.undo",
            subject=audit_subject(held),
            project_id=held.project_id,
            actor=user,
            before=current,
            after={**describe_state(held), "undone": entry.action},
            address=address,
        )
    return held


def acceptance_undo(*, choice: BaselineChoice, user: User, address: str | None = None) -> None:
    """Ends an acceptance, restores the choice of the baseline that it replaced, and reopens the
    alerts that it closed. Only for the person who accepted, within UNDO_MINUTES."""
    recent = choice.chosen_at > clock.now() - timedelta(minutes=UNDO_MINUTES)
    if choice.ended_at is not None or choice.chosen_by_name != user.get_username() or not recent:
        raise AlertActionError("", "the acceptance can no longer be undone.")
    replaced = (
        BaselineChoice.objects.filter(
            model=choice.model, environment=choice.environment, ended_at__lte=choice.chosen_at
        )
        .filter(ended_at__gte=choice.chosen_at - timedelta(seconds=1))
        .select_related("version")
        .order_by("-pk")
        .first()
    )
    closed = Alert.objects.filter(
        deployment__version_id=choice.version_id,
        deployment__environment=choice.environment,
        outcome=AlertOutcome.ACCEPTED,
        resolved_at__gte=choice.chosen_at,
    )
    with write_transaction():
        baseline_choice_end(choice=choice, actor=user, address=address)
        for alert in closed.order_by("pk"):
            alert_undo(alert=alert, user=user, address=address)
        if replaced is not None:
            baseline_choose(
                model=choice.model,
                environment=choice.environment,
                version=replaced.version.name,
                kind=replaced.kind,
                note=replaced.note,
                actor=user,
                address=address,
            )


def _find_action(alert: Alert, user: User) -> AuditEntry:
    """The audit entry of the action to undo."""
    entry = (
        AuditEntry.objects.filter(
            project_id=alert.project_id,
            subject=audit_subject(alert),
            action__startswith="alert.",
            at__gt=clock.now() - timedelta(minutes=UNDO_MINUTES),
        )
        .exclude(action="alert.note")
        .order_by("-pk")
        .first()
    )
    if entry is None or entry.action not in ACTIONS or entry.actor_id != user.pk:
        raise AlertActionError("", f"A-{alert.number} has no action of yours to undo.")
    known: Mapping[str, Any] = entry.after or {}
    after = {name: known.get(name) for name in describe_state(alert)}
    if after != describe_state(alert):
        raise AlertActionError("", f"A-{alert.number} has changed since; nothing was undone.")
    return entry


def _has_open_twin(alert: Alert) -> bool:
    twins = Alert.objects.filter(deployment_id=alert.deployment_id, cause=alert.cause)
    return twins.exclude(pk=alert.pk).exclude(state=AlertState.RESOLVED).exists()


def _restore(alert: Alert, before: Mapping[str, Any]) -> None:
    """Sets the fields that `describe_state` recorded."""
    owner = before.get("owner")
    alert.state, alert.outcome = before.get("state", alert.state), before.get("outcome", "")
    alert.owner = User.objects.filter(pk=owner).first() if owner else None
    alert.acknowledged_at = _parse(before.get("acknowledged_at"))
    alert.snoozed_until = _parse(before.get("snoozed_until"))
    if alert.state != AlertState.RESOLVED:
        alert.resolved_at = None


def _parse(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
