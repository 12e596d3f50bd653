"""ASGI front: receives the whole body before a thread handles the request, and drops slow
transfers.

Flow of a request in granian, on the event loop of its process:

1. Receive the body within a `Transfer` and a `ByteBudget` for senders with or without a known key.
2. Put a job into the lane of the path; a thread of the lane calls the WSGI application.
3. Send the answer in chunks within a `Transfer` and the budget of answers.

Invariants: a slow client never holds a thread. Unfinished bodies and large unsent answers stay
within their budgets, because the oldest transfer is evicted at the limit. A transfer below the
minimum rate ends: a slow body is refused, and a slow reader is disconnected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from dashboard.common.url_prefix import Application
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.request_checks import Environ, find_cached_key
from dashboard.serving import request_limits
from dashboard.serving.client_sockets import disconnect_clients, limit_listeners
from dashboard.serving.refusal_responses import build_refusal, record_slow_reader
from dashboard.serving.request_limits import ByteBudget
from dashboard.serving.thread_lanes import BUSY_DETAIL, Lanes
from dashboard.serving.wsgi_call import (
    AsgiResponse,
    build_environ,
    call_application,
    encode_headers,
)

logger = logging.getLogger(__name__)

CHUNK_BYTES = 32 << 10
"""Bytes of an answer that are sent at once; a shorter answer fits into the kernel's buffer."""

FAILURE_RESPONSE = AsgiResponse(
    500, [(b"content-type", b"text/plain")], b"The server failed; it has logged why.\n"
)

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Transfer:
    """A body or answer in progress. The transfer ends if it falls below the minimum rate or is
    evicted."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._limit = asyncio.timeout_at(self._begun + request_limits.allowed_seconds(0))
        self.evicted = False

    async def __aenter__(self) -> Transfer:
        await self._limit.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._limit.__aexit__(*error)

    def moved(self, total: int) -> None:
        """Records that `total` bytes have moved. Raises TimeoutError if the transfer was
        evicted."""
        if self.evicted:
            raise TimeoutError
        self._limit.reschedule(self._begun + request_limits.allowed_seconds(total))

    def evict(self) -> None:
        """Ends the transfer, to free memory for others."""
        self.evicted = True
        self._limit.reschedule(self._loop.time())


class AsgiFront:
    """ASGI application that receives, passes to a lane, and sends. Every wait is on the event loop,
    so a waiting client costs no thread."""

    def __init__(self, application: Application) -> None:
        self._application, self._lanes, self._bound = application, Lanes(), False
        self._keyed, self._strangers = (
            ByteBudget(request_limits.MAX_KEYED_BODY_BYTES),
            ByteBudget(request_limits.MAX_ANONYMOUS_BODY_BYTES),
        )
        self._answers = ByteBudget(request_limits.MAX_RESPONSE_BYTES)
        self._leaving: set[tuple[str, int]] = set()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if not self._bound:
            self._bound = True
            limit_listeners()
        environ = build_environ(scope)
        try:
            length = request_limits.parse_content_length(environ)
            body = await self._body(environ, length, receive) if length else b""
            answer = await self._run(environ, body)
        except RefusalError as refused:
            status, headers, body = build_refusal(refused, environ)
            answer = AsgiResponse(
                status, [*encode_headers(headers), (b"connection", b"close")], body
            )
        await self._send(answer, scope["client"], send)

    async def _body(self, environ: Environ, length: int, receive: Receive) -> bytes:
        budget = self._strangers if find_cached_key(environ) is None else self._keyed
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
                        raise RefusalError(
                            "bad_request",
                            f"The body is {size} bytes long, but Content-Length is {length}.",
                        )
                    budget.take(transfer, len(part), transfer.evict)
                    transfer.moved(size)
        except TimeoutError:
            if transfer.evicted:
                raise RefusalError(
                    "busy", "Too many request bodies are in progress; send it again.", retry_after=5
                ) from None
            raise RefusalError(
                "too_slow",
                f"only {size} of {length} bytes arrived in "
                f"{request_limits.allowed_seconds(size):.0f} s.",
            ) from None
        finally:
            budget.release(transfer)

    async def _run(self, environ: Environ, body: bytes) -> AsgiResponse:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[AsgiResponse | RefusalError] = loop.create_future()

        def run(in_time: bool) -> None:
            found: AsgiResponse | RefusalError = FAILURE_RESPONSE
            try:
                found = (
                    call_application(self._application, environ, body)
                    if in_time
                    else RefusalError("busy", BUSY_DETAIL, retry_after=5)
                )
            finally:
                loop.call_soon_threadsafe(_set_result, answered, found)

        self._lanes.of(environ["PATH_INFO"]).put(run, len(body))
        found = await answered
        if isinstance(found, RefusalError):
            raise found
        return found

    async def _send(self, answer: AsgiResponse, client: tuple[str, Any], send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
        )
        if len(answer.body) <= CHUNK_BYTES:
            await send({"type": "http.response.body", "body": answer.body})
            return
        transfer = Transfer()
        try:
            async with transfer:
                self._answers.take(transfer, len(answer.body), transfer.evict)
                for begin in range(0, len(answer.body), CHUNK_BYTES):
                    transfer.moved(begin)
                    await send(
                        {
                            "type": "http.response.body",
                            "body": answer.body[begin : begin + CHUNK_BYTES],
                            "more_body": True,
                        }
                    )
                await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            record_slow_reader()
            self._disconnect(client)
        finally:
            self._answers.release(transfer)

    def _disconnect(self, client: tuple[str, Any]) -> None:
        """Collects clients and disconnects them once a second, because finding their sockets
        requires a scan of all sockets."""
        if not self._leaving:
            asyncio.get_running_loop().call_later(1.0, self._disconnect_all)
        self._leaving.add((client[0], int(client[1])))

    def _disconnect_all(self) -> None:
        leaving, self._leaving = self._leaving, set()
        disconnect_clients(leaving)


def _set_result(
    answered: asyncio.Future[AsgiResponse | RefusalError], found: AsgiResponse | RefusalError
) -> None:
    if not answered.done():
        answered.set_result(found)
