"""Outbox: writes the messages of an event, with their channels and times; the caller holds the lock
on the project's row."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from dashboard.alerts.models import (
    Alert,
    AlertCause,
    AlertEvent,
    AlertState,
    Channel,
    Delivery,
    DeliveryKind,
    DeliveryState,
    MaintenanceWindow,
    Rule,
)
from dashboard.alerts.notification_policy import (
    AlertSubject,
    MaintenanceRow,
    NotificationPolicy,
    RuleRow,
    find_hold_end,
    select_channels,
)
from dashboard.alerts.payloads import build_alert_payload
from dashboard.common import clock
from dashboard.fleet.models import Instance
from dashboard.projects.models import Project
from dashboard.regressions.evidence_reader import find_rank_divergence
from dashboard.regressions.models import Verdict

logger = logging.getLogger(__name__)
GROUPING_DELAY = timedelta(seconds=3)
"""Delay of messages that may be grouped, so that related alerts share one message."""
UNDELIVERED_STATES = (DeliveryState.WAITING, DeliveryState.HELD)


def enqueue_messages(
    *, alert: Alert, event: AlertEvent, kind: DeliveryKind, verdict: Verdict | None, news: str = ""
) -> None:
    """Queues one message per channel that the rules select.

    A channel gets "opened" before any other message about an alert. It gets "resolved" only if it
    got, or will get, an earlier message about the alert."""
    channels = lock_channels(alert.project_id)
    policy = read_policy(alert.project_id)
    told = {pk: _has_message(alert, channel) for pk, channel in channels.items()}
    if kind == DeliveryKind.RESOLVED:
        for pk, channel in channels.items():
            if told[pk]:
                covers = _merge(alert, channel, at=event.at)
                enqueue_message(
                    alert, event, channel, kind, verdict, policy, news=news, covers=covers
                )
        return
    for pk in _select_channels(policy, alert, channels):
        first = DeliveryKind.CHANGED if told[pk] else DeliveryKind.OPENED
        at_once = find_hold_end(policy, build_subject(alert), pk, event.at) is None
        older = (
            _merge(alert, channels[pk], at=event.at, states=(DeliveryState.HELD,))
            if at_once
            else []
        )
        enqueue_message(alert, event, channels[pk], first, verdict, policy, covers=older)


def enqueue_message(
    alert: Alert,
    event: AlertEvent,
    channel: Channel,
    kind: DeliveryKind,
    verdict: Verdict | None,
    policy: NotificationPolicy,
    *,
    news: str = "",
    covers: list[str] | None = None,
) -> None:
    """Queues one message; holds it if it may not go now."""
    later = find_hold_end(policy, build_subject(alert), channel.pk, event.at)
    Delivery.objects.create(
        project_id=alert.project_id,
        channel=channel,
        alert=alert,
        kind=kind,
        state=DeliveryState.WAITING if later is None else DeliveryState.HELD,
        held_until=later,
        message_id=compute_message_id(alert_id=alert.pk, channel_id=channel.pk, event_id=event.pk),
        facts=build_alert_payload(alert=alert, verdict=verdict, news=news, covers=covers),
        next_attempt_at=later
        or event.at + (GROUPING_DELAY if _may_be_grouped(alert, kind) else timedelta(0)),
        created_at=event.at,
    )


def enqueue_missed_messages(*, channel: Channel) -> None:
    """Queues a message for each open alert that began while the channel was disabled, because no
    message was queued for the channel then."""
    policy = read_policy(channel.project_id)
    known = Delivery.objects.filter(channel=channel, alert=OuterRef("pk"))
    rows = Alert.objects.filter(~Exists(known), project_id=channel.project_id).exclude(
        state=AlertState.RESOLVED
    )
    for alert in rows.select_related(
        "deployment__model", "deployment__version", "verdict"
    ).order_by("number"):
        event = alert.events.order_by("pk").first()
        if event is not None and channel.pk in _select_channels(policy, alert, [channel.pk]):
            enqueue_message(alert, event, channel, DeliveryKind.OPENED, alert.verdict, policy)


def _may_be_grouped(alert: Alert, kind: DeliveryKind) -> bool:
    """True if the message waits for related alerts. Alerts are grouped by environment, so an alert
    without known instances does not wait."""
    if alert.group_id is not None or kind != DeliveryKind.OPENED:
        return alert.group_id is not None
    deployment = alert.deployment
    return Instance.objects.filter(
        version_id=deployment.version_id, environment=deployment.environment
    ).exists()


def compute_message_id(*, alert_id: int, channel_id: int, event_id: int) -> str:
    """Deterministic message ID: every worker computes the same ID for an event and a channel."""
    digest = hashlib.sha256(f"{settings.BASE_URL} {alert_id} {channel_id} {event_id}".encode())
    return f"msg_{digest.hexdigest()[:32]}"


def lock_channels(project_id: int) -> dict[int, Channel]:
    """Locks the enabled channels, always in this order, because delivery workers lock a channel
    before its rows."""
    rows = (
        Channel.objects.select_for_update(no_key=True)
        .filter(project_id=project_id, enabled=True)
        .order_by("pk")
    )
    return {channel.pk: channel for channel in rows}


def _select_channels(
    policy: NotificationPolicy, alert: Alert, channels: Iterable[int]
) -> list[int]:
    urgent = alert.cause == AlertCause.FLEET_SILENCE or (
        alert.verdict is not None and find_rank_divergence(alert.verdict.evidence) is not None
    )
    return select_channels(policy, replace(build_subject(alert), urgent=urgent), channels)


def build_subject(alert: Alert) -> AlertSubject:
    """The alert's properties that rules match."""
    if alert.cause == AlertCause.FLEET_SILENCE:
        return AlertSubject(alert.severity, "", "", whole=True)
    return AlertSubject(alert.severity, alert.deployment.environment, alert.deployment.model.name)


def read_policy(project_id: int) -> NotificationPolicy:
    """The rules of a project and its maintenance windows that have not ended."""
    windows = MaintenanceWindow.objects.filter(project_id=project_id, ends_at__gt=clock.now())
    return NotificationPolicy(
        rules=tuple(
            _rule(rule) for rule in Rule.objects.filter(project_id=project_id).order_by("pk")
        ),
        windows=tuple(
            MaintenanceRow(row.starts_at, row.ends_at, row.environment, row.model_name)
            for row in windows
        ),
        zone=get_time_zone(Project.objects.get(pk=project_id)),
    )


def get_time_zone(project: Project) -> ZoneInfo:
    """Time zone of the project; UTC if this machine does not know the name."""
    try:
        return ZoneInfo(project.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        logger.warning(
            "unknown time zone %r of project %s; its quiet hours use UTC",
            project.time_zone,
            project.slug,
        )
        return ZoneInfo("UTC")


def _rule(rule: Rule) -> RuleRow:
    return RuleRow(
        channel=rule.channel_id,
        severities=tuple(rule.severities),
        environments=tuple(rule.environments),
        models=tuple(rule.models_named),
        quiet_from=rule.quiet_from,
        quiet_until=rule.quiet_until,
        roll_back_passes=rule.roll_back_passes,
        repeat_minutes=rule.repeat_minutes,
        escalate_minutes=rule.escalate_minutes,
        escalate_to=rule.escalate_to_id,
    )


def _has_message(alert: Alert, channel: Channel) -> bool:
    return (
        Delivery.objects.filter(alert=alert, channel=channel)
        .exclude(state=DeliveryState.DEAD)
        .exists()
    )


def _merge(
    alert: Alert,
    channel: Channel,
    *,
    at: datetime,
    states: tuple[DeliveryState, ...] = UNDELIVERED_STATES,
) -> list[str]:
    """Marks undelivered messages that are not in flight as merged; a later message replaces them.
    Returns their IDs."""
    untold = Delivery.objects.filter(
        Q(leased_until=None) | Q(leased_until__lte=at),
        alert=alert,
        channel=channel,
        state__in=states,
    )
    covered = list(untold.order_by("pk").values_list("message_id", flat=True))
    Delivery.objects.filter(message_id__in=covered, state__in=states).update(
        state=DeliveryState.MERGED, leased_until=None
    )
    return covered
