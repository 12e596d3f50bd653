"""What a channel is: a file that puts facts into its own words and posts them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from dashboard.alerts.models import Channel as ChannelRow
from dashboard.alerts.payloads import MessagePayload
from dashboard.common.outbound.client import OutboundResponse


class DeliveryError(Exception):
    """A message was not taken. `permanent`: trying again cannot help; `disables`: nor can any other
    message to this channel."""

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
    """One thing to tell: its id stays the same over every try, `kind` is a DeliveryKind, `at` is
    when it happened."""

    id: str
    kind: str
    at: datetime
    facts: MessagePayload


@dataclass(frozen=True)
class EncodedMessage:
    """A message in the words of a channel."""

    id: str
    body: bytes


class Channel(Protocol):
    """One kind of channel. `pace` is the least number of seconds between two messages to the same
    address, `seconds` the most that sending one may take: what takes longer is given up until its
    next try, whatever it waits for."""

    kind: str
    label: str
    pace: float
    seconds: float

    def address_check(self, address: str) -> None:
        """Raises ValueError with a sentence when this cannot be the address of such a channel."""

    def build(self, message: Message) -> EncodedMessage:
        """Puts a message into this channel's words; takes any text."""

    def send(self, payload: EncodedMessage, channel: ChannelRow) -> OutboundResponse:
        """Posts it once; returns the answer when it was taken, raises DeliveryError or
        OutboundError when not."""
