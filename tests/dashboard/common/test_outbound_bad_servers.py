"""Slow, endless, broken or absent servers: the exchange ends within limits, with a response or a
reason."""

from __future__ import annotations

import socket
import time

import pytest
from pytest_django import Settings

from dashboard.common.outbound.client import (
    OutboundFailure,
    OutboundLimits,
    OutboundResponse,
    outbound_post,
)
from tests.dashboard.common.wire_server import Handler, answering, request_read, wire_server

LONG = OutboundLimits()
SHORT = OutboundLimits(connect=5, total=0.4)
HEAD = b"HTTP/1.1 200 OK\r\n"


def trickling(first: bytes, drop: bytes, last: bytes) -> Handler:
    """Sends a little every moment for 4 s, each time well within any limit for one read, and then
    the rest."""

    def handle(connection: socket.socket) -> None:
        request_read(connection)
        connection.sendall(first)
        for _ in range(200):
            connection.sendall(drop)
            time.sleep(0.02)
        connection.sendall(last)

    return handle


def endless(connection: socket.socket) -> None:
    request_read(connection)
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"X-More: and more\r\n" * 100)


def silent(connection: socket.socket) -> None:
    request_read(connection)
    connection.recv(1)


def not_reading(connection: socket.socket) -> None:
    time.sleep(4)


def post(
    handler: Handler, settings: Settings, limits: OutboundLimits = LONG, body: bytes = b"{}"
) -> OutboundResponse:
    with wire_server(handler) as server:
        settings.OUTBOUND_ALLOW = server.allow
        return outbound_post(
            url=server.url, body=body, headers={"Content-Type": "application/json"}, limits=limits
        )


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (silent, "No response within"),
        (
            trickling(HEAD + b"X-Slow: ", b"x", b"\r\nContent-Length: 0\r\n\r\n"),
            "No response within",
        ),
        (
            trickling(b"", b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"Content-Length: 0\r\n\r\n"),
            "No response within",
        ),
    ],
)
def test_the_time_limit_covers_the_whole_exchange(
    handler: Handler, reason: str, settings: Settings
) -> None:
    with pytest.raises(OutboundFailure, match=reason):
        post(handler, settings, SHORT)


def test_a_server_that_does_not_read_is_given_up(settings: Settings) -> None:
    with pytest.raises(OutboundFailure, match="No response within"):
        post(not_reading, settings, SHORT, body=b"x" * (32 << 20))


@pytest.mark.parametrize(
    "handler",
    [
        endless,
        answering(),
        answering(b"HTTP/1.1 20"),
        answering(b"SSH-2.0-OpenSSH_9.6\r\n"),
        answering(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"),
        answering(b"HTTP/9.9 999999 no\r\n\r\n"),
        answering(b"\x00" * 70000),
    ],
)
def test_an_invalid_response_is_a_failure(handler: Handler, settings: Settings) -> None:
    with pytest.raises(OutboundFailure):
        post(handler, settings)


def test_an_endless_body_is_cut(settings: Settings) -> None:
    answer = post(answering(HEAD + b"\r\n", b"a" * (1 << 20)), settings)
    assert (answer.status, answer.text) == (200, "a" * (16 << 10))


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (answering(HEAD + b"Content-Length: 2\r\n\r\nok"), "ok"),
        (answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"), "ok"),
        (answering(HEAD + b"\r\nok"), "ok"),
        (answering(HEAD + b"Content-Length: 100\r\n\r\nok"), "ok"),
        (answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nok"), " [broke off]"),
        (answering(HEAD + b"Content-Length: 5\r\n\r\na\x00\xff\x1bb"), "a\ufffd\ufffd\ufffdb"),
    ],
)
def test_a_broken_or_odd_body_does_not_lose_the_status(
    handler: Handler, text: str, settings: Settings
) -> None:
    answer = post(handler, settings)
    assert (answer.status, answer.text, answer.cut) == (200, text, "[broke off]" in text)


def test_a_trickling_body_is_abandoned_at_the_time_limit(settings: Settings) -> None:
    answer = post(
        trickling(HEAD + b"Content-Length: 1000\r\n\r\n", b"x", b"y" * 800), settings, SHORT
    )
    assert answer.status == 200
    assert answer.text.endswith("[broke off]")
    assert "y" not in answer.text


def test_the_request_is_a_plain_post_with_its_headers(settings: Settings) -> None:
    seen: list[bytes] = []

    def handle(connection: socket.socket) -> None:
        seen.append(request_read(connection))
        connection.sendall(
            b"HTTP/1.1 429 Slow down\r\nRetry-After: 30\r\nContent-Length: 12\r\n\r\nrate_limited"
        )

    assert post(handler=handle, settings=settings, body=b'{"a": 1}') == OutboundResponse(
        429, "rate_limited", "30"
    )
    head, _, body = seen[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert (lines[0], body) == ("POST /services/T0/B0/secret-part HTTP/1.1", b'{"a": 1}')
    assert [line.split(":")[0] for line in lines[1:]].count("Host") == 1
    assert {
        "Content-Type: application/json",
        "Connection: close",
        "Accept-Encoding: identity",
    } <= set(lines)
