"""Channel interface: a channel encodes a payload for its service and sends it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from dashboard.alerts.models import Channel as ChannelRow
from dashboard.alerts.payloads import MessagePayload
from dashboard.common.outbound.client import OutboundResponse


class DeliveryError(Exception):
    """A message was not accepted. `permanent`: a retry cannot succeed; `disables`: no other message
    to this channel can succeed either."""

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        disables: bool = False,
        answer: OutboundResponse | None = None,
    ) -> None:
        super().__init__(message)
        self.permanent = permanent or disables
        self.disables = disables
        self.answer = answer


@dataclass(frozen=True)
class Message:
    """One message to send: `id` is the same for every attempt, `kind` is a DeliveryKind, and `at`
    is the time of the event."""

    id: str
    kind: str
    at: datetime
    facts: MessagePayload


@dataclass(frozen=True)
class EncodedMessage:
    """A message encoded for a channel."""

    id: str
    body: bytes


class Channel(Protocol):
    """One kind of channel. `pace` is the minimum number of seconds between two messages to the same
    address. `seconds` is the time limit of one attempt; a longer attempt is aborted and retried
    later."""

    kind: str
    label: str
    pace: float
    seconds: float

    def address_check(self, address: str) -> None:
        """Raises ValueError with a sentence if this is not a valid address for the channel."""

    def build(self, message: Message) -> EncodedMessage:
        """Encodes a message for this channel; accepts any text."""

    def send(self, payload: EncodedMessage, channel: ChannelRow) -> OutboundResponse:
        """Sends the message once; returns the response if the message was accepted, otherwise
        raises DeliveryError or OutboundError."""
