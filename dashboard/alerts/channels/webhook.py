"""Generic webhooks (Standard Webhooks): JSON with an ID, a timestamp and an HMAC-SHA256 signature.

The body is `{"type": ..., "timestamp": ISO 8601, "data": MessagePayload}`. The types are
"alert.opened", "alert.changed", "alert.resolved", "alert.repeated", "alert.escalated",
"alerts.digest" (several alerts in one message) and "channel.test". The body follows
webhook.schema.json, which only gains keys. `webhook-id` is the same for every attempt."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets

from django.conf import settings

from dashboard.alerts.channels.base import DeliveryError, EncodedMessage, Message
from dashboard.alerts.models import Channel, DeliveryKind
from dashboard.common import clock
from dashboard.common.outbound.client import OutboundLimits, OutboundResponse, outbound_post
from dashboard.common.outbound.url import parse_target

PREFIX = "whsec_"
MESSAGE_ERROR_STATUSES = (400, 413, 415, 422)
"""Statuses about the message itself: a retry fails the same way, and a later message may be
urgent."""
EVENT_TYPES = {DeliveryKind.TEST.value: "channel.test", DeliveryKind.DIGEST.value: "alerts.digest"}


def secret_make() -> str:
    """A new signing secret, in the format of the receivers' libraries."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def sign_message(*, message_id: str, timestamp: int, body: bytes, keys: list[str]) -> str:
    """One v1 signature per secret, so that a receiver with either secret accepts the message."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = (
        hmac.digest(base64.b64decode(key.removeprefix(PREFIX)), signed, hashlib.sha256)
        for key in keys
    )
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def event_type(message: Message) -> str:
    """The event type of a message."""
    return EVENT_TYPES.get(message.kind, f"alert.{message.kind}")


class Webhook:
    """Argo CD, Jenkins, GitHub and any other receiver of JSON."""

    kind = "webhook"
    label = "Webhook"
    pace = 0.0
    seconds = OutboundLimits.total
    content_type = "application/json"

    def address_check(self, address: str) -> None:
        """Accepts any address that the outbound client may send to."""
        parse_target(address, settings.OUTBOUND_ALLOW)

    def build(self, message: Message) -> EncodedMessage:
        """The envelope with the payload."""
        envelope = {
            "type": event_type(message),
            "timestamp": message.at.isoformat(),
            "data": message.facts,
        }
        return EncodedMessage(
            message.id, json.dumps(envelope, separators=(",", ":"), allow_nan=False).encode()
        )

    def send(self, payload: EncodedMessage, channel: Channel) -> OutboundResponse:
        """Any 2xx means accepted; 410 disables the channel permanently."""
        timestamp = int(clock.unix())
        keys = [key for key in (channel.secret, channel.secret_previous) if key]
        headers = {
            "Content-Type": self.content_type,
            "webhook-id": payload.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign_message(
                message_id=payload.id, timestamp=timestamp, body=payload.body, keys=keys
            ),
        }
        answer = outbound_post(url=channel.address, body=payload.body, headers=headers)
        if answer.status == 410:
            raise DeliveryError(
                "The receiver answered 410: this webhook no longer exists.",
                disables=True,
                answer=answer,
            )
        if 300 <= answer.status < 400:
            raise DeliveryError(
                f"The receiver answered {answer.status}: redirects are not followed.", answer=answer
            )
        if not 200 <= answer.status < 300:
            raise DeliveryError(
                f"The receiver answered {answer.status}.",
                permanent=answer.status in MESSAGE_ERROR_STATUSES,
                answer=answer,
            )
        return answer
