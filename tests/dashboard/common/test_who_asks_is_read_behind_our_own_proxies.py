"""Client address of a request: the address that the outermost trusted proxy saw, never a value that
the client wrote into the header."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.test import Client

from dashboard.accounts.models import AuditEntry, User
from dashboard.accounts.session_expiry import reset_sign_in_limits
from dashboard.common.client_address import find_client_address
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.request_checks import key_require
from tests.dashboard.conftest import PASSWORD

PROXY = "10.0.0.1"


@pytest.mark.parametrize(
    ("proxies", "header", "address"),
    [
        (0, "203.0.113.7", PROXY),
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "198.51.100.1, 203.0.113.7", "203.0.113.7"),
        (2, "198.51.100.1, 203.0.113.7, 10.0.0.2", "203.0.113.7"),
        (2, "203.0.113.7", PROXY),
        (1, "", PROXY),
        (1, "unknown", PROXY),
        (1, "203.0.113.7:51234", "203.0.113.7"),
        (1, "[2001:db8::7]:51234", "2001:db8::7"),
        (1, "::ffff:203.0.113.7", "203.0.113.7"),
    ],
)
def test_the_entry_of_the_outermost_trusted_proxy_counts(
    settings: LazySettings, proxies: int, header: str, address: str
) -> None:
    settings.TRUSTED_PROXIES = proxies
    assert find_client_address({"REMOTE_ADDR": PROXY, "HTTP_X_FORWARDED_FOR": header}) == address


def test_a_forged_header_bypasses_no_limit(settings: LazySettings, user: User) -> None:
    settings.TRUSTED_PROXIES = 1
    reset_sign_in_limits()
    for number in range(11):
        made_up = {"X-Forwarded-For": f"198.51.100.{number}, 203.0.113.7"}
        answer = Client(REMOTE_ADDR=PROXY).post(
            "/accounts/login/", {"login": f"nobody-{number}", "password": "wrong"}, headers=made_up
        )
    assert "Too many failed sign-ins" in answer.content.decode()
    other = Client(REMOTE_ADDR=PROXY, headers={"X-Forwarded-For": "203.0.113.8"})
    assert other.post("/accounts/login/", {"login": "ada", "password": PASSWORD}).status_code == 302
    assert AuditEntry.objects.get(action="user.sign_in").address == "203.0.113.8"


def test_the_audit_log_names_the_sender_of_an_exposed_key(
    settings: LazySettings, ingest_key: str
) -> None:
    settings.TRUSTED_PROXIES = 1
    with pytest.raises(RefusalError, match="URL"):
        key_require(
            {
                "QUERY_STRING": f"key={ingest_key}",
                "REMOTE_ADDR": PROXY,
                "HTTP_X_FORWARDED_FOR": "198.51.100.1, 203.0.113.7",
            }
        )
    assert AuditEntry.objects.get(action="key.exposed").address == "203.0.113.7"
