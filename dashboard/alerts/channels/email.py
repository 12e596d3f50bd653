"""E-mail through Django's backend, within 30 s: one plain-text mail per message to one address,
which may be a mailing list."""

from __future__ import annotations

import json
import smtplib
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils.text import capfirst

from dashboard.alerts.channels.base import DeliveryError, EncodedMessage, Message
from dashboard.alerts.channels.message_text import (
    digest_line,
    message_notes,
    message_title,
    to_single_line,
)
from dashboard.alerts.models import Channel, DeliveryKind
from dashboard.alerts.payloads import MessagePayload
from dashboard.common.mail_address import mail_address_check
from dashboard.common.outbound.client import OutboundResponse

MAX_SUBJECT_LENGTH, MAX_BODY_LENGTH = 150, 20_000
NO_MAILBOX_CODES = (550, 551, 553)
"""Status codes of a mail server for a mailbox that does not exist."""


class Email:
    """One e-mail address."""

    kind = "email"
    label = "E-mail"
    pace = 1.0
    seconds = float(settings.EMAIL_SECONDS)

    def address_check(self, address: str) -> None:
        """Checks that the address is valid and that this server can send mail."""
        if not settings.MAIL_READY:
            raise ValueError(
                "E-mail is not configured on this server. Its operator must set "
                "COMPILEWATCH_EMAIL_HOST."
            )
        try:
            mail_address_check(address)
        except ValueError as error:
            raise ValueError(capfirst(str(error))) from error

    def build(self, message: Message) -> EncodedMessage:
        """Subject, text, and a thread ID that groups the mails about one alert in mail clients."""
        facts, host = message.facts, urlsplit(settings.BASE_URL).hostname or "compilewatch"
        thread = f"{facts['alert']['id']}.{facts['slug']}" if facts["alert"] else message.id
        text = "\n".join(_lines(message))[:MAX_BODY_LENGTH]
        content = {
            "subject": to_single_line(message_title(message))[:MAX_SUBJECT_LENGTH],
            "text": text,
            "thread": f"<{thread}@{host}>",
            "host": host,
        }
        return EncodedMessage(message.id, json.dumps(content).encode())

    def send(self, payload: EncodedMessage, channel: Channel) -> OutboundResponse:
        """Accepted means that the configured mail server accepted the mail; later failures come
        back as mail."""
        content: dict[str, Any] = json.loads(payload.body)
        headers = {
            "Message-ID": f"<{payload.id}@{content['host']}>",
            "References": content["thread"],
            "Auto-Submitted": "auto-generated",
        }
        mail = EmailMessage(
            content["subject"], content["text"], to=[channel.address], headers=headers
        )
        try:
            mail.send()
        except smtplib.SMTPRecipientsRefused as error:
            code, said = next(iter(error.recipients.values()), (0, b""))
            raise _build_refusal(
                code, said, disables=code in NO_MAILBOX_CODES, permanent=500 <= code < 600
            ) from error
        except smtplib.SMTPAuthenticationError as error:
            raise _build_refusal(error.smtp_code, error.smtp_error) from error
        except smtplib.SMTPResponseException as error:
            data = isinstance(error, smtplib.SMTPDataError)
            raise _build_refusal(
                error.smtp_code, error.smtp_error, permanent=data and 500 <= error.smtp_code < 600
            ) from error
        except (smtplib.SMTPException, OSError) as error:
            within = (
                "or the connection ended before it accepted the message "
                f"(limit {settings.EMAIL_SECONDS} s, {type(error).__name__})"
            )
            raise DeliveryError(f"The mail server was unreachable, {within}.") from error
        return OutboundResponse(250, "accepted by the mail server")


def _build_refusal(
    code: int, said: bytes | str, *, disables: bool = False, permanent: bool = False
) -> DeliveryError:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return DeliveryError(
        f"The mail server answered {code}.",
        permanent=permanent,
        disables=disables,
        answer=OutboundResponse(code, to_single_line(text)[:200]),
    )


def _lines(message: Message) -> list[str]:
    facts = message.facts
    lines = [to_single_line(facts["news"] or facts["sentence"]), ""]
    if message.kind == DeliveryKind.DIGEST:
        lines += [
            part
            for line in facts["alerts"]
            for part in (
                to_single_line(digest_line(line)),
                *([f"  {to_single_line(line['link'])}"] if line["link"] else []),
            )
        ]
    elif message.kind == DeliveryKind.RESOLVED:
        lines.append(to_single_line(f"Original alert: {facts['sentence']}"))
    else:
        where = (
            (f"{row['name']}{', ' + row['region'] if row['region'] else ''}", row["text"])
            for row in facts["evidence"]
        )
        lines += [to_single_line(f"- {name}: {text}") for name, text in where]
        lines += [to_single_line(f"Cause: {facts['cause']}")] if facts["cause"] else []
    return [
        *lines,
        "",
        *(to_single_line(note) for note in message_notes(message)),
        "",
        *_links(facts),
    ]


def _links(facts: MessagePayload) -> list[str]:
    links = facts["links"]
    wanted = (
        ("Alert", links["alert"]),
        ("Evidence", links["evidence"]),
        ("Rollback runbook", links["roll_back_guide"]),
    )
    found = [f"{label}: {to_single_line(url)}" for label, url in wanted if url]
    return found or [f"Alerts: {links.get('alerts') or links['project']}"]
