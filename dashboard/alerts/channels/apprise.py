"""Telegram, Discord and others through Apprise, where it is installed and the operator of the
server has allowed their schemas.

Apprise makes its own connections: they do not pass the guard of common/outbound/client.py. So only
services whose hosts are fixed and public can be allowed, an address says nothing but where a
message goes there, and without COMPILEWATCH_APPRISE there is no such channel."""

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
    """One address of one service, such as tgram://TOKEN/CHAT."""

    kind = "apprise"
    label = "Apprise"
    pace = 1.0
    seconds = 30.0

    def address_check(self, address: str) -> None:
        """One of the schemas that the operator allows, without options: some of them would turn
        checks off or lead elsewhere."""
        if not apprise_ready():
            raise ValueError(
                "This server sends nothing through Apprise; its operator has to install it "
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
                "Options, spaces and characters beyond ASCII are not taken in this address."
            )
        if _service(address) is None:
            raise ValueError(f"Apprise does not understand this {schema}:// address.")

    def build(self, message: Message) -> EncodedMessage:
        """A title and plain lines."""
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
        """Apprise says yes or no and nothing more; what was allowed once may be no longer."""
        try:
            self.address_check(channel.address)
        except ValueError as error:
            raise DeliveryError(str(error), permanent=True) from error
        if not _send_notification(channel.address, json.loads(payload.body)):
            raise DeliveryError(
                "The service did not take it, or could not be reached; Apprise does not say which."
            )
        return OutboundResponse(200, "taken")


def apprise_ready() -> bool:
    """Whether such channels can be made here."""
    return bool(settings.APPRISE) and importlib.util.find_spec("apprise") is not None


def _service(address: str) -> Any:
    import apprise  # noqa: PLC0415  # optional, and slow to load

    return apprise.Apprise.instantiate(address, suppress_exceptions=True)


def _send_notification(address: str, content: dict[str, str]) -> bool:
    """As plain text: a service that takes markup gets it escaped, which only Apprise's own front
    does."""
    import apprise  # noqa: PLC0415

    front = apprise.Apprise()
    front.add(_service(address))
    return bool(
        front.notify(
            title=content["title"], body=content["body"], body_format=apprise.NotifyFormat.TEXT
        )
    )
