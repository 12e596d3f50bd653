"""The ASGI application that granian serves: it takes a whole body before a thread answers it, and gives up what is too slow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from dashboard.common.url_prefix import Application
from dashboard.ingest.body_decoder import Refused
from dashboard.ingest.request_checks import Environ, key_known
from dashboard.serving import request_limits
from dashboard.serving.client_sockets import clients_disconnect, listeners_bound
from dashboard.serving.refusal_responses import refusal_of, slow_reader_note
from dashboard.serving.request_limits import Budget
from dashboard.serving.thread_lanes import BUSY, Lanes
from dashboard.serving.wsgi_call import Answer, answer_of, environ_of, headers_of

logger = logging.getLogger(__name__)

PIECE = 32 << 10
"""Bytes of an answer that are handed over at once; a shorter answer fits into the kernel's buffer."""

FAILED = Answer(500, [(b"content-type", b"text/plain")], b"The server failed; it has logged why.\n")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Transfer:
    """A body or an answer under way: it ends when it falls behind the lowest rate, or makes room for others."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._limit = asyncio.timeout_at(self._begun + request_limits.seconds_for(0))
        self.evicted = False

    async def __aenter__(self) -> Transfer:
        await self._limit.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._limit.__aexit__(*error)

    def moved(self, total: int) -> None:
        """Notes that `total` bytes have moved; raises TimeoutError in a transfer that makes room."""
        if self.evicted:
            raise TimeoutError
        self._limit.reschedule(self._begun + request_limits.seconds_for(total))

    def evict(self) -> None:
        """Ends it for others."""
        self.evicted = True
        self._limit.reschedule(self._loop.time())


class Front:
    """Reads, hands over to a lane, and sends; all of it waits on the event loop, where a client that waits costs no thread."""

    def __init__(self, application: Application) -> None:
        self._application, self._lanes, self._bound = application, Lanes(), False
        self._keyed, self._strangers = Budget(request_limits.KEYED_BYTES), Budget(request_limits.STRANGERS_BYTES)
        self._answers = Budget(request_limits.ANSWERS_BYTES)
        self._leaving: set[tuple[str, int]] = set()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if not self._bound:
            self._bound = True
            listeners_bound()
        environ = environ_of(scope)
        try:
            length = request_limits.length_of(environ)
            body = await self._body(environ, length, receive) if length else b""
            answer = await self._run(environ, body)
        except Refused as refused:
            status, headers, body = refusal_of(refused, environ)
            answer = Answer(status, [*headers_of(headers), (b"connection", b"close")], body)
        await self._send(answer, scope["client"], send)

    async def _body(self, environ: Environ, length: int, receive: Receive) -> bytes:
        budget = self._strangers if key_known(environ) is None else self._keyed
        parts, size, transfer = [], 0, Transfer()
        try:
            async with transfer:
                while True:
                    message = await receive()
                    parts.append(part := message.get("body", b""))
                    size += len(part)
                    if size >= length:
                        return b"".join(parts)
                    if not message.get("more_body"):
                        raise Refused("bad_request", f"The body is {size} bytes long, Content-Length says {length}.")
                    budget.take(transfer, len(part), transfer.evict)
                    transfer.moved(size)
        except TimeoutError:
            if transfer.evicted:
                raise Refused("busy", "Too many bodies are under way; send it again.", retry_after=5) from None
            raise Refused("too_slow", f"{size} of {length} bytes came in {request_limits.seconds_for(size):.0f} s.") from None
        finally:
            budget.release(transfer)

    async def _run(self, environ: Environ, body: bytes) -> Answer:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Answer | Refused] = loop.create_future()

        def run(in_time: bool) -> None:
            found: Answer | Refused = FAILED
            try:
                found = answer_of(self._application, environ, body) if in_time else Refused("busy", BUSY, retry_after=5)
            finally:
                loop.call_soon_threadsafe(_settle, answered, found)

        self._lanes.of(environ["PATH_INFO"]).put(run, len(body))
        found = await answered
        if isinstance(found, Refused):
            raise found
        return found

    async def _send(self, answer: Answer, client: tuple[str, Any], send: Send) -> None:
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        if len(answer.body) <= PIECE:
            await send({"type": "http.response.body", "body": answer.body})
            return
        transfer = Transfer()
        try:
            async with transfer:
                self._answers.take(transfer, len(answer.body), transfer.evict)
                for begin in range(0, len(answer.body), PIECE):
                    transfer.moved(begin)
                    await send({"type": "http.response.body", "body": answer.body[begin : begin + PIECE], "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            slow_reader_note()
            self._disconnect(client)
        finally:
            self._answers.release(transfer)

    def _disconnect(self, client: tuple[str, Any]) -> None:
        """Once a second for all that are due: to find their sockets takes a look at every one."""
        if not self._leaving:
            asyncio.get_running_loop().call_later(1.0, self._disconnect_all)
        self._leaving.add((client[0], int(client[1])))

    def _disconnect_all(self) -> None:
        leaving, self._leaving = self._leaving, set()
        clients_disconnect(leaving)


def _settle(answered: asyncio.Future[Answer | Refused], found: Answer | Refused) -> None:
    if not answered.done():
        answered.set_result(found)
