"""Bad webhooks (a name that hangs or is private, redirects, endless headers, no encryption) end in
time, and the other channels continue meanwhile."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from pytest_django import Settings

from dashboard.alerts.channels import webhook
from dashboard.alerts.models import Delivery
from dashboard.alerts.services import channel_create, channel_test, deliveries_send
from dashboard.common.outbound.client import UNREACHABLE, OutboundLimits, outbound_post
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Time
from tests.dashboard.alerts.slack_server import StandIn, stand_in
from tests.dashboard.common.wire_server import answering, request_read, wire_server

pytestmark = pytest.mark.django_db
MESSAGES = 3
NAMES = {"private.example": "10.0.0.1", "metadata.example": "169.254.169.254"}


@pytest.fixture
def hanging_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A resolver that knows NAMES and never answers for hangs.example; the event is set when
    hangs.example is requested."""
    asked, over, real = threading.Event(), threading.Event(), socket.getaddrinfo

    def look_up(host: Any, port: Any, *rest: Any, **named: Any) -> Any:
        if host == "hangs.example":
            asked.set()
            over.wait(60)
            raise OSError("gone")
        return real(NAMES.get(host, host), port, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield asked
    over.set()


def endless(connection: socket.socket) -> None:
    request_read(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(b"X-More: and more\r\n" * 100)


def never_encrypts(connection: socket.socket) -> None:
    """Reads the client's data and never answers."""
    while connection.recv(1 << 16):
        pass


def test_each_ends_in_time_and_the_others_continue(
    project: Project,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    hanging_names: threading.Event,
    time: Time,
) -> None:
    monkeypatch.setattr(
        webhook,
        "outbound_post",
        partial(outbound_post, limits=OutboundLimits(connect=1.0, total=2.0)),
    )
    with (
        stand_in() as quick,
        stand_in() as elsewhere,
        wire_server(endless) as long,
        wire_server(never_encrypts) as plain,
    ):
        moved = (
            f"HTTP/1.1 302 Found\r\nLocation: {elsewhere.url}\r\nContent-Length: 0\r\n\r\n".encode()
        )
        with wire_server(answering(moved)) as redirecting:
            ports = (quick.port, elsewhere.port, long.port, plain.port, redirecting.port)
            settings.OUTBOUND_ALLOW = tuple(f"127.0.0.1:{port}" for port in ports)
            bad = {
                "hangs": "https://hangs.example/hook",
                "private": "https://private.example/hook",
                "metadata": "https://metadata.example/latest/meta-data/",
                "endless": long.url,
                "plain": plain.url.replace("http://", "https://"),
                "redirects": redirecting.url,
            }
            said = sent_to(project, bad, quick, hanging_names)
            assert elsewhere.bodies == []
    assert {
        name: text for name, text in said.items() if name in ("hangs", "private", "metadata")
    } == dict.fromkeys(("hangs", "private", "metadata"), UNREACHABLE)
    assert said["redirects"] == "The receiver answered 302: redirects are not followed."
    assert said["endless"] == "The connection was closed early (HTTPException)."
    assert said["plain"] == "No TLS connection was established in time."


def sent_to(
    project: Project, bad: dict[str, str], quick: StandIn, asked: threading.Event
) -> dict[str, str]:
    """The recorded answers of the bad channels; the good channel gets its messages while they are
    in progress."""
    rows = [
        channel_create(
            project=project, kind="webhook", name=name, address=address, actor_name="tests"
        )
        for name, address in bad.items()
    ]
    good = channel_create(
        project=project, kind="webhook", name="good", address=quick.url, actor_name="tests"
    )
    for row in [*rows, *[good] * MESSAGES]:
        channel_test(channel=row, actor_name="tests")
    assert deliveries_send() == MESSAGES
    assert asked.is_set() and len(quick.bodies) == MESSAGES
    tried = Delivery.objects.exclude(channel=good)
    assert {(one.state, one.attempts, one.leased_until) for one in tried} == {("waiting", 1, None)}
    ended = max(one.tries.latest("pk").ended_at for one in Delivery.objects.filter(channel=good))
    assert ended <= min(
        one.tries.latest("pk").ended_at
        for one in tried.filter(channel__name__in=("hangs", "plain"))
    )
    return {one.channel.name: one.last_answer for one in tried.select_related("channel")}
