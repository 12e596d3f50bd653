"""Reminders: queues messages about unacknowledged alerts, repeated to the same channel and
escalated to another one."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime

from django.db.models import Max, Q

from dashboard.alerts.models import (
    Alert,
    AlertState,
    Channel,
    Delivery,
    DeliveryKind,
    DeliveryState,
    EventKind,
    Rule,
)
from dashboard.alerts.notification_policy import (
    NotificationHistory,
    NotificationPolicy,
    Reminder,
    list_due_reminders,
)
from dashboard.alerts.services.enqueue import (
    build_subject,
    enqueue_message,
    lock_channels,
    read_policy,
)
from dashboard.alerts.services.transitions import event_add, lock_project
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction

logger = logging.getLogger(__name__)


def enqueue_reminders() -> int:
    """Queues every reminder that is due; returns their number. A failed project does not block the
    others."""
    asking = Rule.objects.filter(Q(repeat_minutes__gt=0) | Q(escalate_minutes__gt=0))
    unanswered = Alert.objects.filter(state=AlertState.OPEN, project__in=asking.values("project"))
    count, errors = 0, []
    for project_id in sorted(set(unanswered.values_list("project_id", flat=True))):
        try:
            with write_transaction():
                lock_project(project_id)
                count += _project_remind(project_id)
        except Exception as error:
            logger.exception("the reminders of project %s could not be queued", project_id)
            errors.append(error)
    if errors:
        raise ExceptionGroup("projects whose reminders could not be queued", errors)
    return count


def _project_remind(project_id: int) -> int:
    channels, policy = lock_channels(project_id), read_policy(project_id)
    off = {rule.channel for rule in policy.rules} - set(channels)
    related = ("deployment__model", "deployment__version", "verdict__baseline__version", "project")
    alerts = Alert.objects.filter(project_id=project_id, state=AlertState.OPEN).select_related(
        *related
    )
    reopened = Max("events__at", filter=Q(events__kind=EventKind.REOPENED))
    told: dict[int, list[Delivery]] = {}
    for row in Delivery.objects.filter(alert__in=alerts).defer("facts").order_by("pk"):
        told.setdefault(row.alert_id or 0, []).append(row)
    count = 0
    for alert in alerts.annotate(reopened=reopened).order_by("pk"):
        standing = _build_history(alert.reopened or alert.opened_at, told.get(alert.pk, []), off)
        for reminder in list_due_reminders(policy, build_subject(alert), standing, clock.now()):
            if reminder.channel in channels:
                _remind(alert, channels[reminder.channel], reminder, policy)
                count += 1
    return count


def _build_history(
    open_since: datetime, rows: list[Delivery], off: Collection[int]
) -> NotificationHistory:
    """A held message counts from its release; a failed message does not count.

    If a channel is disabled or its message failed, the escalation time still runs from
    `open_since`."""
    said = [row for row in rows if row.state not in (DeliveryState.HELD, DeliveryState.DEAD)]
    given_up = {row.channel_id for row in rows if row.state == DeliveryState.DEAD}
    untold = dict.fromkeys((*off, *given_up), open_since)
    return NotificationHistory(
        open_since=open_since,
        first_told=untold
        | {row.channel_id: row.held_until or row.created_at for row in reversed(said)},
        last_told={row.channel_id: row.held_until or row.created_at for row in said},
        waiting={
            row.channel_id
            for row in rows
            if row.state in (DeliveryState.WAITING, DeliveryState.HELD)
        },
        escalated={
            row.channel_id
            for row in rows
            if row.kind == DeliveryKind.ESCALATED and row.created_at >= open_since
        },
    )


def _remind(alert: Alert, channel: Channel, reminder: Reminder, policy: NotificationPolicy) -> None:
    kind, event_kind = DeliveryKind.REPEATED, EventKind.REPEATED
    if reminder.escalates:
        kind, event_kind = DeliveryKind.ESCALATED, EventKind.ESCALATED
    sent = "Escalated" if reminder.escalates else "Reminder sent"
    text = f"Not acknowledged for {reminder.minutes} min. {sent} to {channel.name}."
    event = event_add(alert=alert, kind=event_kind, text=text)
    enqueue_message(alert, event, channel, kind, alert.verdict, policy)
