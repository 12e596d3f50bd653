"""Writes channels: their addresses, whether they are enabled, and their signing secrets."""

from __future__ import annotations

import secrets

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.channels import CHANNELS
from dashboard.alerts.channels.webhook import Webhook, secret_make
from dashboard.alerts.models import Channel, Delivery, DeliveryKind, DeliveryState
from dashboard.alerts.payloads import build_channel_test_payload
from dashboard.alerts.services.enqueue import enqueue_missed_messages
from dashboard.alerts.services.transitions import lock_project
from dashboard.common import clock
from dashboard.common.field_error import FieldError
from dashboard.common.write_lock import write_transaction
from dashboard.projects.models import Project

DISABLED_BY_HAND = "Switched off by hand."
"""Reason after a manual disable; stored, so the text must not change. Such a channel is not sent
messages that it missed."""


class ChannelError(FieldError):
    """An invalid channel."""


def channel_create(
    *,
    project: Project,
    kind: str,
    name: str,
    address: str,
    user: User | None = None,
    actor_name: str = "",
    client: str | None = None,
) -> Channel:
    """Creates an enabled channel; raises ChannelError. A webhook gets a signing secret."""
    if kind not in CHANNELS:
        raise ChannelError("kind", f"choose one of {', '.join(sorted(CHANNELS))}.")
    if not name.strip() or len(name) > 100:
        raise ChannelError("name", "enter a name of at most 100 characters.")
    try:
        CHANNELS[kind].address_check(address)
    except ValueError as error:
        raise ChannelError("address", str(error)) from error
    with write_transaction():
        channel = Channel.objects.create(
            project=project,
            kind=kind,
            name=name.strip(),
            address=address,
            secret=secret_make() if isinstance(CHANNELS[kind], Webhook) else "",
            created_at=clock.now(),
        )
        _audit(
            "channel.create",
            channel,
            user,
            actor_name,
            client,
            after={"kind": kind, "name": channel.name},
        )
    return channel


def channel_enable(*, channel: Channel, user: User, client: str | None = None) -> None:
    """Enables a channel; messages that failed while it was disabled can be redelivered. A channel
    that was disabled automatically also gets a message for each open alert it missed."""
    with write_transaction():
        lock_project(channel.project_id)
        Channel.objects.filter(pk=channel.pk).update(
            enabled=True, disabled_reason="", not_before=None
        )
        if channel.disabled_reason != DISABLED_BY_HAND:
            enqueue_missed_messages(channel=channel)
        _audit(
            "channel.enable", channel, user, "", client, before={"reason": channel.disabled_reason}
        )


def channel_disable(
    *, channel: Channel, user: User, reason: str = DISABLED_BY_HAND, client: str | None = None
) -> None:
    """Disables a channel; its waiting messages fail visibly."""
    with write_transaction():
        Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        channel_give_up(channel=channel, reason=reason)
        _audit("channel.disable", channel, user, "", client, after={"reason": reason})


def channel_give_up(*, channel: Channel, reason: str) -> None:
    """Disables a channel and fails its waiting messages; the caller holds the lock on the channel's
    row."""
    Channel.objects.filter(pk=channel.pk).update(enabled=False, disabled_reason=reason)
    Delivery.objects.filter(
        channel=channel, state__in=(DeliveryState.WAITING, DeliveryState.HELD)
    ).update(
        state=DeliveryState.DEAD,
        leased_until=None,
        last_answer=f"Failed: the channel is disabled. {reason}",
    )


def channel_rotate_secret(*, channel: Channel, user: User, client: str | None = None) -> str:
    """Creates a new signing secret and returns it once; messages carry signatures of both secrets
    until the next rotation."""
    if not isinstance(CHANNELS.get(channel.kind), Webhook):
        raise ChannelError("", "Only webhooks have a signing secret.")
    with write_transaction():
        held = Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        held.secret, held.secret_previous = secret_make(), held.secret
        held.save(update_fields=["secret", "secret_previous"])
        _audit("channel.rotate_secret", channel, user, "", client)
    return held.secret


def channel_test(
    *, channel: Channel, user: User | None = None, actor_name: str = "", client: str | None = None
) -> Delivery:
    """Queues a test message, which is delivered like any other; the delivery shows the result."""
    now = clock.now()
    with write_transaction():
        delivery = Delivery.objects.create(
            project_id=channel.project_id,
            channel=channel,
            kind=DeliveryKind.TEST,
            message_id=f"msg_{secrets.token_hex(16)}",
            facts=build_channel_test_payload(channel=channel),
            next_attempt_at=now,
            created_at=now,
        )
        _audit(
            "channel.test",
            channel,
            user,
            actor_name,
            client,
            after={"message": delivery.message_id},
        )
    return delivery


def _audit(
    action: str,
    channel: Channel,
    user: User | None,
    actor_name: str,
    client: str | None,
    *,
    before: object = None,
    after: object = None,
) -> None:
    audit_write(
        action=action,
        subject=f"channel {channel.name}",
        project_id=channel.project_id,
        actor=user,
        actor_name=actor_name,
        before=before,
        after=after,
        address=client,
    )
