"""Operator actions on alerts: each action is one transaction with one timeline event and one audit
entry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.models import Alert, AlertOutcome, AlertState, EventKind
from dashboard.alerts.services.transitions import alert_close, event_add, lock_project
from dashboard.common import clock
from dashboard.common.field_error import FieldError
from dashboard.common.write_lock import write_transaction

MAX_NOTE_LENGTH = 2000
MAX_SNOOZE = timedelta(days=7)


class AlertActionError(FieldError):
    """An action that does not fit the alert."""


def alert_acknowledge(
    *, alert: Alert, user: User, note: str = "", address: str | None = None
) -> Alert:
    """Acknowledges the alert and makes the user its owner."""
    with change_alert(alert, user, "alert.acknowledge", note, address) as held:
        if held.state == AlertState.ACKNOWLEDGED and held.owner_id == user.pk:
            raise AlertActionError("", f"A-{held.number} is already assigned to you.")
        held.state, held.snoozed_until = AlertState.ACKNOWLEDGED, None
        held.acknowledged_at, held.owner = clock.now(), user
        held.save()
        event_add(
            alert=held, kind=EventKind.ACKNOWLEDGED, text=note, actor_name=user.get_username()
        )
    return held


def alert_snooze(
    *, alert: Alert, user: User, until: datetime, note: str = "", address: str | None = None
) -> Alert:
    """Snoozes the alert for at most 7 days; it reopens earlier if it gets worse."""
    if not clock.now() < until <= clock.now() + MAX_SNOOZE:
        raise AlertActionError("until", "choose a time within the next 7 days.")
    with change_alert(alert, user, "alert.snooze", note, address) as held:
        held.state, held.snoozed_until = AlertState.SNOOZED, until
        held.save()
        text = f"Until {clock.format_timestamp(until)}. {note}".rstrip()
        event_add(alert=held, kind=EventKind.SNOOZED, text=text, actor_name=user.get_username())
    return held


def alert_resolve(*, alert: Alert, user: User, note: str = "", address: str | None = None) -> Alert:
    """Resolves the alert manually."""
    with change_alert(alert, user, "alert.resolve", note, address) as held:
        text = _append_note(f"Resolved by {user.get_username()}", note)
        alert_close(
            alert=held, outcome=AlertOutcome.RESOLVED, text=text, actor_name=user.get_username()
        )
    return held


def alert_dismiss(*, alert: Alert, user: User, note: str = "", address: str | None = None) -> Alert:
    """Marks the alert as a false positive. The deployment opens another alert only if it gets
    worse."""
    with change_alert(alert, user, "alert.dismiss", note, address) as held:
        text = _append_note(f"Marked as a false positive by {user.get_username()}", note)
        alert_close(
            alert=held,
            outcome=AlertOutcome.DISMISSED,
            text=text,
            kind=EventKind.DISMISSED,
            actor_name=user.get_username(),
        )
    return held


def alert_note(*, alert: Alert, user: User, note: str, address: str | None = None) -> Alert:
    """Adds a note to the timeline of an open or resolved alert; its state does not change."""
    if not note.strip():
        raise AlertActionError("note", "enter a note.")
    with change_alert(alert, user, "alert.note", note, address, resolved=True) as held:
        event_add(alert=held, kind=EventKind.NOTE, text=note, actor_name=user.get_username())
    return held


def _append_note(what: str, note: str) -> str:
    return f"{what}: {note}" if note else f"{what}."


@contextmanager
def change_alert(
    alert: Alert, user: User, action: str, note: str, address: str | None, *, resolved: bool = False
) -> Iterator[Alert]:
    """The current alert, locked until the change is written; the audit entry has the state before
    and after. `resolved`: a resolved alert may change too."""
    if len(note) > MAX_NOTE_LENGTH:
        raise AlertActionError("note", f"at most {MAX_NOTE_LENGTH:,} characters.")
    with write_transaction():
        lock_project(alert.project_id)
        held = Alert.objects.select_related(
            "deployment__model", "deployment__version", "project", "verdict"
        ).get(pk=alert.pk)
        if held.state == AlertState.RESOLVED and not resolved:
            raise AlertActionError("", f"A-{held.number} is already resolved.")
        before = describe_state(held)
        yield held
        audit_write(
            action=action,
            subject=audit_subject(held),
            project_id=held.project_id,
            actor=user,
            before=before,
            after={**describe_state(held), "note": note},
            address=address,
        )


def audit_subject(alert: Alert) -> str:
    """The subject of the audit entries of an alert."""
    return f"alert A-{alert.number}"


def describe_state(alert: Alert) -> dict[str, Any]:
    """All that an action changes, as stored in its audit entry; `undo` restores it."""
    return {
        "state": alert.state,
        "outcome": alert.outcome,
        "owner": alert.owner_id,
        "acknowledged_at": _format(alert.acknowledged_at),
        "snoozed_until": _format(alert.snoozed_until),
    }


def _format(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
