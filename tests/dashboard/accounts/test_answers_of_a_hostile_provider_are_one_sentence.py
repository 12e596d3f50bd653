"""Attacks with answers: for any answer of the provider, the person gets one page and the log gets
one line."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from dashboard.accounts import oidc_requests
from dashboard.accounts.models import User
from tests.dashboard.accounts.openid.front import (
    CONFIG,
    KEYS,
    PERSON,
    PLACES,
    TOKEN,
    Front,
    send,
    signed,
)
from tests.dashboard.accounts.openid.way_in import START, callback, refused
from tests.dashboard.common.wire_server import answering, wire_server

JSON = ("Content-Type", "application/json")
Raw = Callable[[BaseHTTPRequestHandler], None]


def sending(status: int, body: bytes, *headers: tuple[str, str]) -> Raw:
    return lambda handler: send(handler, status, body, [*(headers or (JSON,))])


def hung_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


ANSWERS: dict[str, Raw] = {
    "a failure": sending(500, b"<h1>Traceback</h1>", ("Content-Type", "text/html")),
    "no JSON": sending(200, b"<script>alert(1)</script>"),
    "half of JSON": sending(200, b'{"access_token": "x'),
    "a list": sending(200, b'["access_token", "keys", "sub", "issuer"]'),
    "a number": sending(200, b"7"),
    "nothing": sending(200, b""),
    "an empty object": sending(200, b"{}"),
    "numbers for strings": sending(
        200,
        b'{"access_token": 1, "id_token": 1, "keys": 1, "sub": 1, "issuer": 1, "token_endpoint": 1}',
    ),
    "nested without end": sending(200, b"[" * 200_000),
    "no letters of any alphabet": sending(200, b'\xff\xfe{"\xc3\x28": "\xed\xa0\x80"}'),
    "a redirect": sending(307, b"", ("Location", "http://127.0.0.1:9/stolen")),
    "no type": sending(200, b'{"access_token": "x"}', ("X-Type", "none")),
    "a line break in a token": sending(
        200, b'{"access_token": "x\\r\\nX-Evil: 1", "id_token": "x"}'
    ),
    "nothing at all": hung_up,
}


def started(client: Client, front: Front, place: str, raw: Raw) -> str:
    """The path to open once this endpoint gives the raw answer: the callback, or the start of the
    sign-in for the configuration endpoint."""
    if place == CONFIG:
        front.raw[place] = raw
        return START
    path = callback(client)
    front.raw[place] = raw
    return path


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ANSWERS)
def test_a_broken_answer_is_one_page_and_one_log_line(
    client: Client, front: Front, name: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused(client, started(client, front, place, ANSWERS[name]), caplog, "")


def test_a_redirect_receives_no_secret(
    client: Client, front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    with wire_server(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as thief:
        front.raw[TOKEN] = sending(307, b"", ("Location", thief.url))
        refused(client, callback(client), caplog, "redirects to another address")
        assert thief.connections == 0


@pytest.mark.parametrize("place", PLACES)
def test_a_huge_answer_is_read_up_to_its_limit(
    client: Client, front: Front, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    written = []

    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(1000):
                handler.wfile.write(b" " * (1 << 20))
                written.append(1 << 20)
        handler.close_connection = True

    refused(client, started(client, front, place, flood), caplog, "longer than 1,048,576 bytes")
    assert sum(written) < 100 << 20


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("drip", [b"", b"x", b" "])
def test_an_answer_that_does_not_end_is_cut_off_after_a_bounded_time(
    client: Client,
    front: Front,
    place: str,
    drip: bytes,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Silence, a header that continues byte by byte, and a body that continues byte by byte."""
    over = threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nX-Long: "
            if drip == b"x"
            else b"HTTP/1.1 200 OK\r\n\r\n{"
            if drip
            else b""
        )
        with contextlib.suppress(OSError):
            while not over.wait(0.1):
                handler.wfile.write(drip)
        handler.close_connection = True

    path = started(client, front, place, hang)
    monkeypatch.setattr(oidc_requests, "REQUEST_TIMEOUT_S", 1.0)
    begun = time.monotonic()
    refused(client, path, caplog, "")
    over.set()
    assert time.monotonic() - begun < 30, "the limit is a second for each of four requests"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"issuer": "https://elsewhere.example"}, "issuer is 'https://elsewhere.example'"),
        (
            {"token_endpoint": "ftp://login.example/token"},
            "token_endpoint is 'ftp://login.example/token'",
        ),
        ({"jwks_uri": None}, "the discovery document"),
        (
            {"authorization_endpoint": "javascript:alert(1)"},
            "authorization_endpoint is 'javascript:alert(1)'",
        ),
    ],
)
def test_the_provider_configuration_is_checked(
    client: Client, front: Front, change: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    front.changes[CONFIG] = lambda config: config | change
    refused(client, START, caplog, why)
    assert front.asked == [CONFIG]


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [{}],
        [None],
        "keys",
        [{"kty": "RSA", "alg": "RS256", "use": "sig"}],
        [{"kty": "oct", "k": "AAAA"}],
    ],
)
def test_invalid_keys_are_refused(
    client: Client, front: Front, keys: object, caplog: pytest.LogCaptureFixture
) -> None:
    front.forge(lambda claims: signed(claims))
    front.changes[KEYS] = lambda _: {"keys": keys}
    refused(client, callback(client), caplog, "")


HOSTILE = "<img src=x onerror=alert(1)>\u202e\r\nBcc: all@example.com\x00\ud800" + "x" * 5000


def test_names_with_control_characters_are_stored_as_plain_lines(
    client: Client, front: Front
) -> None:
    hostile = dict.fromkeys(
        ("preferred_username", "name", "given_name", "family_name", "email", "picture", "groups"),
        HOSTILE,
    )
    front.changes[PERSON] = lambda told: told | hostile | {"email_verified": "maybe"}
    assert client.get(callback(client)).status_code == 302
    [person] = User.objects.all()
    assert not person.is_staff and not person.is_superuser and person.email == ""
    for text in (person.username, person.first_name, person.last_name):
        assert text.isprintable() and len(text) <= 150
    assert len(str(SocialAccount.objects.get().extra_data)) < 2000
    page = client.get("/accounts/provider/").content.decode()
    assert "<img" not in page and client.get("/").status_code == 200


@pytest.mark.parametrize("odd", [None, 7, True, [], {"a": 1}, ""])
def test_names_that_are_not_strings_are_ignored(client: Client, front: Front, odd: object) -> None:
    front.changes[PERSON] = lambda told: (
        told
        | dict.fromkeys(("preferred_username", "name", "given_name", "family_name", "email"), odd)
    )
    assert client.get(callback(client)).status_code == 302
    assert User.objects.get().username
