"""Attacks on the invitation mail: addresses, notes and names that try to add headers, mail text or
page markup."""

from __future__ import annotations

from email import message_from_bytes

import pytest
from django.conf import LazySettings
from django.core import mail
from django.test import Client

from dashboard.alerts.channels.email import Email
from dashboard.projects.models import Invitation, Project

INVITE = "/p/ranking/settings/members/invite/"
HEADERS = {
    "Content-Type", "MIME-Version", "Content-Transfer-Encoding", "Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted",
}  # fmt: skip
ADDRESSES = [
    '"a\x0cBcc:all@example.com"@example.com',
    '"a\x0c\x0cforged"@example.com',
    '"\\\x0b"@example.com',
    '"a\x1cb"@example.com',
    '"a\x01b"@example.com',
    '"<b>bold</b>"@example.com',
    '"a,b@example.org"@example.com',
    "a@example.com\nBcc: all@example.com",
    "a@example.com\r\n\r\nforged",
    "a@example.com,b@example.com",
    "\u202ea@example.com",
    "Mara <a@example.com>",
    "a@" + "\u00e4\u0436\u4e2d" * 20 + ".example",
    "a" * 400 + "@example.com",
]
NAMES = [
    "A\r\nBcc: all@example.com",
    "A\x0cBcc: all@example.com",
    "A\x1c\x85\u2028B",
    "\u202ekcab",
    "<script>alert(1)</script>",
    "x" * 100,
]


@pytest.fixture(autouse=True)
def _mail_is_sent(settings: LazySettings) -> None:
    settings.MAIL_READY = True


def raw() -> bytes:
    [sent] = mail.outbox
    return sent.message().as_bytes()


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_entry_with_more_than_one_address_is_refused(
    signed_in: Client, project: Project, address: str
) -> None:
    answer = signed_in.post(INVITE, {"role": "viewer", "email": address})
    page = answer.content.decode()
    assert (
        answer.status_code == 400 and "This is not a mail address" in page and "<b>bold" not in page
    )
    assert not mail.outbox and not Invitation.objects.exists()


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_alert_channel_refuses_such_an_address_too(address: str) -> None:
    with pytest.raises(ValueError, match="This is not a mail address"):
        Email().address_check(address)


@pytest.mark.parametrize("name", NAMES)
def test_a_project_name_stays_within_the_subject(
    signed_in: Client, project: Project, name: str
) -> None:
    Project.objects.update(name=name)
    page = signed_in.post(INVITE, {"role": "viewer", "email": "mara@example.com"}).content.decode()
    sent = message_from_bytes(raw())
    assert set(sent.keys()) == HEADERS and sent["To"] == "mara@example.com"
    assert str(sent.get_payload()).startswith("ada invited you to the project ")
    assert "<script>alert(1)" not in page
