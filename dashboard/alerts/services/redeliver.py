"""Queues failed messages again: one, or all of a channel."""

from __future__ import annotations

from django.db.models import Q

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.models import AlertState, Channel, Delivery, DeliveryKind, DeliveryState
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction

REDELIVERABLE_KINDS = (DeliveryKind.RESOLVED, DeliveryKind.DIGEST, DeliveryKind.TEST)
"""Kinds of messages that may be sent after the alert is resolved."""

OBSOLETE_MESSAGES = Q(alert__state=AlertState.RESOLVED) & ~Q(kind__in=REDELIVERABLE_KINDS)
"""Messages that would report a resolved alert as open."""

MAX_REDELIVERED = 200
"""Maximum number of messages per call, for channels that were disabled for weeks; the other
messages keep their button."""


def redeliver_message(*, delivery: Delivery, user: User, address: str | None = None) -> Delivery:
    """Queues a failed message again from the first attempt, with the same ID; raises ValueError if
    it cannot be redelivered."""
    with write_transaction():
        channel = _locked(delivery.channel_id)
        held = Delivery.objects.select_related("alert").get(pk=delivery.pk)
        if held.state != DeliveryState.DEAD:
            raise ValueError("Only a failed notification can be redelivered.")
        if (
            held.alert is not None
            and held.alert.state == AlertState.RESOLVED
            and held.kind not in REDELIVERABLE_KINDS
        ):
            raise ValueError(
                f"A-{held.alert.number} is resolved "
                f"({held.alert.get_outcome_display().lower()}): this notification would report "
                "it as open."
            )
        _refuse_off(channel)
        _reset_deliveries([held.pk], f"message {held.message_id}", channel, user, address)
        held.refresh_from_db()
    return held


def redeliver_channel_messages(*, channel: Channel, user: User, address: str | None = None) -> int:
    """Queues the failed messages of a channel that are still true again, the oldest MAX_REDELIVERED
    first; returns their number."""
    with write_transaction():
        channel = _locked(channel.pk)
        _refuse_off(channel)
        dead = Delivery.objects.filter(channel=channel, state=DeliveryState.DEAD).exclude(
            OBSOLETE_MESSAGES
        )
        ids = list(dead.order_by("created_at", "pk").values_list("pk", flat=True)[:MAX_REDELIVERED])
        if ids:
            _reset_deliveries(ids, f"{len(ids)} messages", channel, user, address)
    return len(ids)


def _locked(channel_id: int) -> Channel:
    return Channel.objects.select_for_update(no_key=True).get(pk=channel_id)


def _refuse_off(channel: Channel) -> None:
    if not channel.enabled:
        raise ValueError(
            f"The channel {channel.name} is disabled: {channel.disabled_reason} Enable it first."
        )


def _reset_deliveries(
    ids: list[int], subject: str, channel: Channel, user: User, address: str | None
) -> None:
    Delivery.objects.filter(pk__in=ids).update(
        state=DeliveryState.WAITING, attempts=0, next_attempt_at=clock.now(), leased_until=None
    )
    after = {"channel": channel.name}
    audit_write(
        action="delivery.replay",
        subject=subject,
        project_id=channel.project_id,
        actor=user,
        after=after,
        address=address,
    )
