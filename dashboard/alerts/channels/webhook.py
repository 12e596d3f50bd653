"""Generic webhooks as Standard Webhooks describes them: JSON with an id, a time and an HMAC-SHA256
signature.

The body is {"type": ..., "timestamp": ISO 8601, "data": Facts} with the types "alert.opened",
"alert.changed", "alert.resolved", "alert.repeated", "alert.escalated", "alerts.digest" (several
alerts in one message) and "channel.test"; webhook.schema.json beside this file describes it, and
only ever gains keys. `webhook-id` stays the same over every try.
"""

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
"""Answers about the message itself: another try brings the same, and what comes after it may be
what a person needs now."""
EVENT_TYPES = {DeliveryKind.TEST.value: "channel.test", DeliveryKind.DIGEST.value: "alerts.digest"}


def secret_make() -> str:
    """A new signing secret, in the form that receivers' libraries take."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def sign_message(*, message_id: str, timestamp: int, body: bytes, keys: list[str]) -> str:
    """One v1 signature per secret, so that a receiver with either of them accepts."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = (
        hmac.digest(base64.b64decode(key.removeprefix(PREFIX)), signed, hashlib.sha256)
        for key in keys
    )
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def event_type(message: Message) -> str:
    """What a message is about, as receivers know it."""
    return EVENT_TYPES.get(message.kind, f"alert.{message.kind}")


class Webhook:
    """Argo CD, Jenkins, GitHub and whatever else takes JSON."""

    kind = "webhook"
    label = "Webhook"
    pace = 0.0
    seconds = OutboundLimits.total
    content_type = "application/json"

    def address_check(self, address: str) -> None:
        """Any address that the outbound client would send to."""
        parse_target(address, settings.OUTBOUND_ALLOW)

    def build(self, message: Message) -> EncodedMessage:
        """The envelope around the facts."""
        envelope = {
            "type": event_type(message),
            "timestamp": message.at.isoformat(),
            "data": message.facts,
        }
        return EncodedMessage(
            message.id, json.dumps(envelope, separators=(",", ":"), allow_nan=False).encode()
        )

    def send(self, payload: EncodedMessage, channel: Channel) -> OutboundResponse:
        """Any 2xx means taken; 410 means never again."""
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
                "The receiver answered 410: this webhook is gone for good.",
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
