"""Owes a message again that was given up."""

from __future__ import annotations

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.models import AlertState, Channel, Delivery, DeliveryKind, DeliveryState
from dashboard.common import clock
from dashboard.common.locks import write_transaction

STILL_TRUE = (DeliveryKind.RESOLVED, DeliveryKind.DIGEST, DeliveryKind.TEST)
"""What may be told when the alert is over."""


def delivery_replay(*, delivery: Delivery, user: User, address: str | None = None) -> Delivery:
    """Tries a given-up message again from the start, under the same id; raises ValueError when there is nothing to replay."""
    with write_transaction():
        channel = Channel.objects.select_for_update(no_key=True).get(pk=delivery.channel_id)
        held = Delivery.objects.select_related("alert").get(pk=delivery.pk)
        if held.state != DeliveryState.DEAD:
            raise ValueError("Only a message that was given up can be replayed.")
        if held.alert is not None and held.alert.state == AlertState.RESOLVED and held.kind not in STILL_TRUE:
            raise ValueError(
                f"A-{held.alert.number} is over ({held.alert.get_outcome_display().lower()}): this message would say it goes on."
            )
        if not channel.enabled:
            raise ValueError(f"The channel {channel.name} is off: {channel.disabled_reason} Switch it on first.")
        held.state, held.attempts, held.next_attempt_at, held.leased_until = DeliveryState.WAITING, 0, clock.now(), None
        held.save(update_fields=["state", "attempts", "next_attempt_at", "leased_until"])
        audit_write(
            action="delivery.replay",
            subject=f"message {held.message_id}",
            project_id=held.project_id,
            actor=user,
            after={"channel": channel.name},
            address=address,
        )
    return held
