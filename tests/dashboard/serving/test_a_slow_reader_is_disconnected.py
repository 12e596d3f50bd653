"""A client that does not read a large response is disconnected and counted, and all such responses
together have a memory limit."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.models import Refusal
from dashboard.serving import request_limits
from dashboard.serving.asgi_front import AsgiFront

pytestmark = pytest.mark.django_db(transaction=True)
SIZE = 1 << 20


def large(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    start("200 OK", [("Content-Length", str(SIZE))])
    return [bytes(SIZE)]


async def ask(front: AsgiFront, client: tuple[str, int]) -> None:
    """A request whose response is never read."""
    scope = {
        "type": "http",
        "method": "GET",
        "raw_path": b"/",
        "query_string": b"",
        "scheme": "http",
        "http_version": "1.1",
        "headers": [],
    }

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def receive() -> dict[str, Any]:
        raise AssertionError

    await front(scope | {"server": ("127.0.0.1", "80"), "client": client}, receive, send)


def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_limits, "GRACE_SECONDS", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        accepted, address = listener.accept()

        async def run() -> None:
            await ask(AsgiFront(large), address)
            await asyncio.sleep(1.5)

        with accepted:
            asyncio.run(run())
            client.settimeout(10)
            assert client.recv(1) == b""
    COMMITTER.stop()
    assert Refusal.objects.get(code="slow_reader").count == 1


def test_a_response_above_the_limit_ends_the_oldest_one() -> None:
    async def run() -> list[bool]:
        front = AsgiFront(large)
        front._answers = request_limits.ByteBudget(3 * SIZE)
        tasks = [asyncio.create_task(ask(front, ("127.0.0.1", 1))) for _ in range(4)]
        while front._answers.held < 3 * SIZE or not any(task.done() for task in tasks):
            await asyncio.sleep(0.01)
        done = [task.done() for task in tasks]
        for task in tasks:
            task.cancel()
        return done

    assert sum(asyncio.run(asyncio.wait_for(run(), 30))) == 1
