"""Decides which channels are told of an event, and writes the outbox rows; the caller holds the project's row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db.models import Q

from dashboard.alerts.facts import alert_facts
from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery, DeliveryKind, DeliveryState, Rule
from dashboard.regressions.models import Verdict, VerdictKind


def messages_owe(*, alert: Alert, event: AlertEvent, kind: DeliveryKind, verdict: Verdict | None, news: str = "") -> None:
    """One message per channel that should hear of the event.

    A channel hears "opened" before anything else of an alert, and "resolved" only if it heard, or is about to hear, of it."""
    # Channels first, always in this order: the workers that send hold a channel before they touch its deliveries.
    channels = list(Channel.objects.select_for_update(no_key=True).filter(project_id=alert.project_id, enabled=True).order_by("pk"))
    told = {channel.pk: _told(alert, channel) for channel in channels}
    if kind == DeliveryKind.RESOLVED:
        for channel in channels:
            if told[channel.pk]:
                covers = _merge(alert, channel, at=event.at)
                _owe(alert, event, channel, kind, verdict, news, covers)
        return
    for channel in _wanted(alert, channels):
        first = DeliveryKind.CHANGED if told[channel.pk] else DeliveryKind.OPENED
        _owe(alert, event, channel, first, verdict, news, [])


def message_id(*, alert_id: int, channel_id: int, event_id: int) -> str:
    """The same event, told to the same channel, has the same id whoever makes it."""
    digest = hashlib.sha256(f"{settings.BASE_URL} {alert_id} {channel_id} {event_id}".encode())
    return f"msg_{digest.hexdigest()[:32]}"


def rule_matches(rule: Rule, *, severity: str, environment: str, model: str) -> bool:
    """Whether a rule asks for this alert; an empty list asks for any."""
    wanted = ((rule.severities, severity), (rule.environments, environment), (rule.models_named, model))
    return all(not listed or value in listed for listed, value in wanted)


def _wanted(alert: Alert, channels: Iterable[Channel]) -> list[Channel]:
    rules = list(Rule.objects.filter(project_id=alert.project_id))
    if not rules:
        return [channel for channel in channels if alert.severity == VerdictKind.ROLL_BACK]
    deployment = alert.deployment
    asked = {
        rule.channel_id
        for rule in rules
        if rule_matches(rule, severity=alert.severity, environment=deployment.environment, model=deployment.model.name)
    }
    return [channel for channel in channels if channel.pk in asked]


def _told(alert: Alert, channel: Channel) -> bool:
    return Delivery.objects.filter(alert=alert, channel=channel).exclude(state=DeliveryState.DEAD).exists()


def _merge(alert: Alert, channel: Channel, *, at: datetime) -> list[str]:
    """Takes back what was not delivered and is not under way; the message about the end stands for it."""
    waiting = Delivery.objects.filter(
        Q(leased_until=None) | Q(leased_until__lte=at), alert=alert, channel=channel, state=DeliveryState.WAITING
    )
    covered = list(waiting.order_by("pk").values_list("message_id", flat=True))
    Delivery.objects.filter(message_id__in=covered, state=DeliveryState.WAITING).update(state=DeliveryState.MERGED, leased_until=None)
    return covered


def _owe(
    alert: Alert, event: AlertEvent, channel: Channel, kind: DeliveryKind, verdict: Verdict | None, news: str, covers: list[str]
) -> None:
    Delivery.objects.create(
        project_id=alert.project_id,
        channel=channel,
        alert=alert,
        kind=kind,
        message_id=message_id(alert_id=alert.pk, channel_id=channel.pk, event_id=event.pk),
        facts=alert_facts(alert=alert, verdict=verdict, news=news, covers=covers),
        next_attempt_at=event.at,
        created_at=event.at,
    )
