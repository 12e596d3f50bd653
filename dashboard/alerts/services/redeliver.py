"""Owes messages again that were given up: one, or all of a channel."""

from __future__ import annotations

from django.db.models import Q

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.models import AlertState, Channel, Delivery, DeliveryKind, DeliveryState
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction

REDELIVERABLE_KINDS = (DeliveryKind.RESOLVED, DeliveryKind.DIGEST, DeliveryKind.TEST)
"""What may be told when the alert is over."""

OBSOLETE_MESSAGES = Q(alert__state=AlertState.RESOLVED) & ~Q(kind__in=REDELIVERABLE_KINDS)
"""Messages that would say of an alert that is over that it goes on."""

MAX_REDELIVERED = 200
"""Of a channel that was off for weeks; what is left has its button still."""


def redeliver_message(*, delivery: Delivery, user: User, address: str | None = None) -> Delivery:
    """Tries a given-up message again from the start, under the same id; raises ValueError when
    there is nothing to replay."""
    with write_transaction():
        channel = _locked(delivery.channel_id)
        held = Delivery.objects.select_related("alert").get(pk=delivery.pk)
        if held.state != DeliveryState.DEAD:
            raise ValueError("Only a message that was given up can be replayed.")
        if (
            held.alert is not None
            and held.alert.state == AlertState.RESOLVED
            and held.kind not in REDELIVERABLE_KINDS
        ):
            raise ValueError(
                f"A-{held.alert.number} is over "
                f"({held.alert.get_outcome_display().lower()}): this message would say it "
                "goes on."
            )
        _refuse_off(channel)
        _reset_deliveries([held.pk], f"message {held.message_id}", channel, user, address)
        held.refresh_from_db()
    return held


def redeliver_channel_messages(*, channel: Channel, user: User, address: str | None = None) -> int:
    """Tries again what a channel was not told and what still is so, the oldest MAX_REDELIVERED
    first; returns how many that are."""
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
            f"The channel {channel.name} is off: {channel.disabled_reason} Switch it on first."
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
