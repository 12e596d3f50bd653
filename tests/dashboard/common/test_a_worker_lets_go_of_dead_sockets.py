"""A Redis outage leaves no socket in a worker, and a child of a worker keeps no socket of its
parent. Both kinds of leak grew with each outage."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kombu
import psutil
import pytest
from django.utils.functional import SimpleLazyObject

from dashboard.common.redis_sockets import close_inherited_sockets, install_redis_transport
from dashboard.common.redis_status import BrokerLogFilter
from dashboard.common.redis_transport import Transport
from tests.faults.private_redis import PrivateRedis


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[PrivateRedis]:
    """A Redis server that the test may kill."""
    with contextlib.closing(PrivateRedis(tmp_path)) as server:
        yield server


def _sockets_to(port: int) -> int:
    """The number of this process's descriptors that are connections to that port, by any owner."""
    return sum(
        bool(one.raddr) and one.raddr.port == port
        for one in psutil.Process().net_connections("tcp")
    )


def _consuming(redis: PrivateRedis, got: list[object]) -> kombu.Connection:
    """Consumes tasks and broadcast messages as a worker does, with an auto-delete queue for the
    broadcasts."""
    install_redis_transport()
    connection = kombu.Connection(
        redis.url, transport_options={"socket_timeout": 1, "socket_connect_timeout": 1}
    )
    broadcast = kombu.Queue(
        "broadcast", kombu.Exchange("broadcast", type="fanout"), auto_delete=True
    )
    for queue in (kombu.Queue("tasks"), broadcast):
        kombu.Consumer(
            connection.channel(), [queue], callbacks=[lambda body, _: got.append(body)], no_ack=True
        ).consume()
    with contextlib.suppress(TimeoutError):
        connection.drain_events(timeout=0.2)
    return connection


def test_a_lost_connection_leaves_no_socket(redis: PrivateRedis) -> None:
    connection = _consuming(redis, [])
    assert isinstance(connection.transport, Transport)
    assert _sockets_to(redis.port)
    redis.kill()
    # Celery handles a broken connection in this way.
    with contextlib.suppress(Exception):
        connection.collect(socket_timeout=0.1)
    del connection
    gc.collect()
    assert _sockets_to(redis.port) == 0


def test_a_task_that_ends_after_its_connection_was_closed_ends_no_worker(
    redis: PrivateRedis, caplog: pytest.LogCaptureFixture
) -> None:
    install_redis_transport()
    connection, got, noise = kombu.Connection(redis.url), list[Any](), logging.getLogger("kombu")
    queue = kombu.Queue("tasks", channel=connection.channel())
    queue.declare()
    connection.Producer().publish({}, routing_key="tasks")
    kombu.Consumer(
        connection.channel(), [queue], callbacks=[lambda _, message: got.append(message)]
    ).consume()
    connection.drain_events(timeout=5)
    [message] = got
    redis.kill()
    with contextlib.suppress(Exception):
        connection.collect(socket_timeout=0.1)
    drop = BrokerLogFilter()
    noise.addFilter(drop)
    try:
        message.ack_log_error(noise, kombu.Connection(redis.url).connection_errors)
    finally:
        noise.removeFilter(drop)
    assert not message.acknowledged and caplog.messages == []


def _left_in_a_child(port: int) -> int:
    """The number of connections to that port in a child that closed its inherited sockets; 255 if
    closing failed."""
    child = os.fork()
    if not child:
        left = 255
        try:
            close_inherited_sockets()
            left = _sockets_to(port)
        finally:
            os._exit(left)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_closes_sockets_in_every_state(redis: PrivateRedis) -> None:
    """A socket that another thread of the parent was creating at the fork has no Python attributes
    yet."""
    half_made = socket.socket.__new__(socket.socket)
    assert not hasattr(half_made, "_io_refs")
    with contextlib.ExitStack() as stack:
        plain, read_by_a_file, with_tls = (
            stack.enter_context(socket.create_connection(("127.0.0.1", redis.port)))
            for _ in range(3)
        )
        reader = stack.enter_context(read_by_a_file.makefile("rb"))
        context = ssl.create_default_context()
        wrapped = stack.enter_context(
            context.wrap_socket(
                with_tls, server_hostname="localhost", do_handshake_on_connect=False
            )
        )
        assert _sockets_to(redis.port) == 3
        assert _left_in_a_child(redis.port) == 0
        assert _sockets_to(redis.port) == 3, "the parent keeps its own sockets"
        plain.sendall(b"PING\r\n")
        assert plain.recv(16) == b"+PONG\r\n"
        read_by_a_file.sendall(b"PING\r\n")
        assert reader.readline() == b"+PONG\r\n"
        assert wrapped.fileno() >= 0


def test_a_child_keeps_no_socket_of_its_parent(redis: PrivateRedis) -> None:
    got: list[object] = []
    connection = _consuming(redis, got)
    there = _sockets_to(redis.port)
    assert there
    never_evaluated = SimpleLazyObject(lambda: pytest.fail("the lazy object was evaluated"))
    assert _left_in_a_child(redis.port) == 0
    del never_evaluated
    assert _sockets_to(redis.port) == there
    with kombu.Connection(redis.url) as other:
        kombu.Producer(other.channel()).publish("task", routing_key="tasks")
    connection.drain_events(timeout=10)
    assert got == ["task"], "the parent continues with its own connection"
    connection.release()
