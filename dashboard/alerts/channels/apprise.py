"""Apprise: sends to Telegram, Discord and other services, if Apprise is installed and the server's
operator allows their schemas.

Apprise opens its own connections, which bypass the guard of common/outbound/client.py. For this
reason only services with fixed, public hosts can be allowed, and an address only names a
destination within its service. Without COMPILEWATCH_APPRISE this kind of channel does not exist."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

from django.conf import settings

from dashboard.alerts.channels.base import DeliveryError, EncodedMessage, Message
from dashboard.alerts.channels.message_text import (
    digest_line,
    message_notes,
    message_title,
    to_single_line,
)
from dashboard.alerts.models import Channel
from dashboard.common.outbound.client import OutboundResponse

MAX_TITLE_LENGTH, MAX_BODY_LENGTH = 150, 3000


class Apprise:
    """One address of one service, such as `tgram://TOKEN/CHAT`."""

    kind = "apprise"
    label = "Apprise"
    pace = 1.0
    seconds = 30.0

    def address_check(self, address: str) -> None:
        """Accepts the allowed schemas without options: some options disable checks or redirect
        elsewhere."""
        if not apprise_ready():
            raise ValueError(
                "Apprise is not configured on this server. Its operator must install Apprise "
                "and set COMPILEWATCH_APPRISE."
            )
        schema = address.partition("://")[0]
        if schema not in settings.APPRISE:
            raise ValueError(
                "The address must start with "
                f"{' or '.join(f'{one}://' for one in settings.APPRISE)}."
            )
        if (
            "?" in address
            or "#" in address
            or not address.isascii()
            or not address.isprintable()
            or " " in address
        ):
            raise ValueError(
                "The address must not contain options, spaces or non-ASCII characters."
            )
        if _service(address) is None:
            raise ValueError(f"Apprise cannot parse this {schema}:// address.")

    def build(self, message: Message) -> EncodedMessage:
        """A title and lines of plain text."""
        facts = message.facts
        lines = [
            facts["news"] or facts["sentence"],
            *(digest_line(line) for line in facts["alerts"]),
            *message_notes(message),
        ]
        lines += [
            url
            for url in (
                facts["links"]["alert"] or facts["links"]["alerts"],
                facts["links"]["roll_back_guide"],
            )
            if url
        ]
        content = {
            "title": to_single_line(message_title(message))[:MAX_TITLE_LENGTH],
            "body": "\n".join(map(to_single_line, lines))[:MAX_BODY_LENGTH],
        }
        return EncodedMessage(message.id, json.dumps(content).encode())

    def send(self, payload: EncodedMessage, channel: Channel) -> OutboundResponse:
        """Apprise returns only success or failure. The address is checked again because the allowed
        schemas may have changed."""
        try:
            self.address_check(channel.address)
        except ValueError as error:
            raise DeliveryError(str(error), permanent=True) from error
        if not _send_notification(channel.address, json.loads(payload.body)):
            raise DeliveryError(
                "The service rejected the message or was unreachable. Apprise reports no details."
            )
        return OutboundResponse(200, "accepted")


def apprise_ready() -> bool:
    """True if this server can send through Apprise."""
    return bool(settings.APPRISE) and importlib.util.find_spec("apprise") is not None


def _service(address: str) -> Any:
    import apprise  # noqa: PLC0415  # optional, and slow to load

    return apprise.Apprise.instantiate(address, suppress_exceptions=True)


def _send_notification(address: str, content: dict[str, str]) -> bool:
    """Sends plain text. For services with markup, only the notify method of Apprise escapes it."""
    import apprise  # noqa: PLC0415

    front = apprise.Apprise()
    front.add(_service(address))
    return bool(
        front.notify(
            title=content["title"], body=content["body"], body_format=apprise.NotifyFormat.TEXT
        )
    )
