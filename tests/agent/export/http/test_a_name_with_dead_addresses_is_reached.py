"""A name that resolves to several addresses: a dead address delays one request, not every
request."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from compilewatch.export.http import connection as connection_module
from compilewatch.export.transport import HttpTransport

from tests.dashboard.common.wire_server import answering, wire_server

SHORT = 0.2
BODY = b'{"v":1,"reports":[]}'
OURS = b'HTTP/1.1 200 OK\r\n\r\n{"cw": 1, "acked": [], "next_seq": 1}'
ABSENT = 12
"""DECnet, which Linux does not support: its addresses act like IPv6 addresses on a system without
IPv6."""
Place = tuple[Any, ...]
Resolve = Callable[..., None]


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Resolve:
    """Resolves the name to these addresses after `seconds`."""

    def name(*places: Place, seconds: float = 0.0) -> None:
        def found(*given: object, **named: object) -> list[Place]:
            time.sleep(seconds)
            return [(family, socket.SOCK_STREAM, 6, "", place) for family, place in places]

        monkeypatch.setattr(socket, "getaddrinfo", found)

    return name


@pytest.fixture
def good() -> Iterator[Place]:
    with wire_server(answering(OURS)) as server:
        yield (socket.AF_INET, ("127.0.0.1", server.port))


@pytest.fixture
def silent() -> Iterator[Callable[[], Place]]:
    """Addresses that do not answer a connection attempt: the accept queue is full."""
    with ExitStack() as stack:

        def make() -> Place:
            full = stack.enter_context(socket.socket())
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            for _ in range(4):
                filler = stack.enter_context(socket.socket())
                filler.setblocking(False)
                filler.connect_ex(full.getsockname())
            return socket.AF_INET, full.getsockname()

        yield make


def test_an_address_of_an_unsupported_family_is_skipped(resolve: Resolve, good: Place) -> None:
    with pytest.raises(OSError):
        socket.socket(ABSENT, socket.SOCK_STREAM)
    resolve((ABSENT, ("1.1", 1)), good)
    assert HttpTransport("http://two.example", "k").send(BODY).ack is not None


def test_an_ipv6_address_without_a_route_is_skipped(resolve: Resolve, good: Place) -> None:
    resolve((socket.AF_INET6, ("2001:db8::1", 9, 0, 0)), good)
    assert HttpTransport("http://two.example", "k").send(BODY).ack is not None


def test_dead_addresses_that_use_up_a_request_are_tried_last_afterwards(
    resolve: Resolve, good: Place, silent: Callable[[], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "CONNECT_SECONDS", SHORT)
    monkeypatch.setattr(connection_module, "TOTAL_SECONDS", 2 * SHORT)
    dead = [silent() for _ in range(4)]
    resolve(*dead, good)
    transport = HttpTransport("http://many.example", "k")
    failures = 0
    while failures < 2 * len(dead) + 2:
        try:
            assert transport.send(BODY).ack is not None
            break
        except OSError:
            failures += 1
    assert 0 < failures <= 2 * len(dead)
    assert transport._state.dead == {place for _, place in dead}
    monkeypatch.setattr(connection_module, "CONNECT_SECONDS", 600.0)
    monkeypatch.setattr(connection_module, "TOTAL_SECONDS", 600.0)
    assert transport.send(BODY).ack is not None  # the good address first


def test_addresses_that_all_died_are_tried_in_their_order_again(
    resolve: Resolve, good: Place
) -> None:
    nobody = itertools.count(1)
    resolve(*[(socket.AF_INET, ("127.0.0.1", next(nobody))) for _ in range(3)])
    transport = HttpTransport("http://many.example", "k")
    with pytest.raises(ConnectionRefusedError):
        transport.send(BODY)
    assert transport._state.dead == set()
    resolve((socket.AF_INET, ("127.0.0.1", 1)), good)
    assert transport.send(BODY).ack is not None
    resolve(good)
    assert transport.send(BODY).ack is not None
    # An address that the name no longer resolves to is forgotten.
    assert transport._state.dead == set()


def test_the_time_limit_of_a_request_starts_after_the_name_look_up(
    resolve: Resolve, good: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "TOTAL_SECONDS", 2.0)
    resolve(good, seconds=2.1)
    assert HttpTransport("http://slow.example", "k").send(BODY).ack is not None
