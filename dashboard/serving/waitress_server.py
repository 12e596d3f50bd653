"""Embedded server: waitress with deadlines per connection, memory limits and lanes instead of one
pool.

The main loop of waitress reads and writes every socket. A complete request becomes a job in the
lane of its path; a thread of the lane calls the WSGI application. Once a second, `maintenance`
applies the deadlines.

Invariants:
- A connection never holds a thread before its request is complete.
- A late head or body is refused; a client that reads below the minimum rate is disconnected.
- Unfinished bodies stay within two budgets, for senders with and without a known key. Unsent
  answers above a third limit are dropped at the next second. The oldest transfer makes room.
- Budgets belong to the main loop: lane threads do not change them.
"""

from __future__ import annotations

import socket
import time
from http import HTTPStatus
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask
from waitress.utilities import Error

from dashboard.common.bind_port import MAX_CONNECTIONS, REQUEST_HEAD_TIMEOUT_S
from dashboard.common.url_prefix import Application
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.request_checks import find_cached_key
from dashboard.serving.client_sockets import limit_listener
from dashboard.serving.refusal_responses import build_refusal, record_slow_reader
from dashboard.serving.request_limits import (
    MAX_ANONYMOUS_BODY_BYTES,
    MAX_BODY_BYTES,
    MAX_KEYED_BODY_BYTES,
    MAX_RESPONSE_BYTES,
    ByteBudget,
    allowed_seconds,
)
from dashboard.serving.thread_lanes import BUSY_DETAIL, Lanes

IDLE_TIMEOUT_S = 30
"""Seconds between two requests of a connection."""

_ERROR_CODES = {
    400: "bad_request",
    408: "too_slow",
    413: "too_large",
    431: "bad_request",
    503: "busy",
}


class RequestRefusal(Error):  # type: ignore[misc]
    """A request that gets a refusal instead of an answer of the application."""

    def __init__(self, refused: RefusalError) -> None:
        super().__init__(refused.detail)
        self.refused = refused


class Request(HTTPRequestParser):  # type: ignore[misc]
    """Request parser that refuses a request with both a length and chunks, and ends its connection:
    a proxy in front may use the other one (RFC 9112, 6.1)."""

    def __init__(self, adj: Any) -> None:
        super().__init__(adj)
        self.begun = time.monotonic()

    def parse_header(self, header_plus: bytes) -> None:
        """Parses the head of a request. Raises ParsingError, which yields 400."""
        super().parse_header(header_plus)
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            raise ParsingError("A request must not have both Content-Length and Transfer-Encoding")

    @property
    def environ(self) -> dict[str, str]:
        """The headers under their WSGI names."""
        return {f"HTTP_{name}": value for name, value in self.headers.items()}

    def late(self, now: float) -> RefusalError | None:
        """The refusal of a request that missed its deadline, or None."""
        if not self.headers_finished:
            over, what = (
                now - self.begun > REQUEST_HEAD_TIMEOUT_S,
                f"The request head was not complete within {REQUEST_HEAD_TIMEOUT_S} s.",
            )
        else:
            limit = allowed_seconds(self.body_bytes_received)
            over, what = (
                now - self.begun > limit,
                f"Only {self.body_bytes_received} bytes of the body arrived in {limit:.0f} s.",
            )
        return RefusalError("too_slow", what) if over else None


class RefusalTask(ErrorTask):  # type: ignore[misc]
    """Answers the refusals of waitress and of the front in the one error shape."""

    def execute(self) -> None:
        """Writes the refusal; called by a thread of a lane."""
        error = self.request.error
        code = _ERROR_CODES.get(error.code)
        refused = (
            error.refused
            if isinstance(error, RequestRefusal)
            else RefusalError(code, error.body)
            if code
            else None
        )
        if refused is None:
            super().execute()
            return
        status, headers, body = build_refusal(refused, self.request.environ)
        self.status = f"{status} {HTTPStatus(status).phrase}"
        self.response_headers.extend(headers)
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection."""

    parser_class = Request
    error_task_class = RefusalTask
    request: Request | None
    """The incomplete request."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self.sent = 0
        self.writes_since: tuple[float, int] | None = None
        super().__init__(*args, **more)

    def send(self, data: bytes, do_close: bool = True) -> int:
        """Sends data and counts the bytes that the client accepted."""
        taken: int = super().send(data, do_close)
        self.sent += taken
        return taken

    def received(self, data: bytes) -> bool:
        """Charges received bytes to the budget of the sender, and releases them once the request is
        complete."""
        found: bool = super().received(data)
        request = self.request
        if request is None or not request.headers_finished:
            self.server.bodies_release(self)
        else:
            self.server.body_take(self, request, len(data))
        return found

    def refuse(self, refused: RefusalError) -> None:
        """Ends the current request with a refusal; called by the main loop."""
        self.server.bodies_release(self)
        with self.requests_lock:
            request, self.request = self.request, None
            if request is None:
                return
            request.error, request.completed = RequestRefusal(refused), True
            self.requests.append(request)
            if len(self.requests) == 1:
                self.server.add_task(self)

    def handle_close(self) -> None:
        """Releases the memory of an unfinished body."""
        self.server.bodies_release(self)
        super().handle_close()

    def is_slow_reader(self, now: float) -> bool:
        """True if the client reads the answer below the minimum rate."""
        if not self.total_outbufs_len:
            self.writes_since = None
            return False
        since, sent = self.writes_since = self.writes_since or (now, self.sent)
        return now - since > allowed_seconds(self.sent - sent)


class Dispatcher:
    """Task dispatcher of waitress that passes each request to the lane of its path."""

    def __init__(self) -> None:
        self._lanes = Lanes()

    def add_task(self, channel: Channel) -> None:
        """Queues the next request of a connection; called by the main loop and by lane threads."""
        request = channel.requests[0]
        if request.error:
            self._lanes.refusing.put(lambda _: channel.service())
            return
        try:
            self._lanes.of(request.path).put(
                lambda in_time: _answer(channel, request, in_time), request.body_bytes_received
            )
        except RefusalError as refused:
            request.error = RequestRefusal(refused)
            self._lanes.refusing.put(lambda _: channel.service())

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> None:
        """Ends the threads and drops queued jobs."""
        self._lanes.stop(timeout)


def _answer(channel: Channel, request: Request, in_time: bool) -> None:
    if not in_time:
        request.error = RequestRefusal(RefusalError("busy", BUSY_DETAIL, retry_after=5))
    channel.service()


class LaneServer(TcpWSGIServer):  # type: ignore[misc]
    """Server that waits for all clients in one thread. A request reaches a lane thread only once it
    is complete."""

    channel_class = Channel

    def __init__(self, application: Application, listener: socket.socket) -> None:
        limit_listener(listener)
        adj = Adjustments(
            sockets=[listener],
            ident="compilewatch",
            # the settings choose the trusted proxy headers, as in full mode
            clear_untrusted_proxy_headers=False,
            max_request_body_size=MAX_BODY_BYTES + 1,
            channel_timeout=IDLE_TIMEOUT_S,
            cleanup_interval=1,
            connection_limit=MAX_CONNECTIONS,
            backlog=MAX_CONNECTIONS,
            asyncore_use_poll=True,
        )
        self._keyed, self._strangers = (
            ByteBudget(MAX_KEYED_BODY_BYTES),
            ByteBudget(MAX_ANONYMOUS_BODY_BYTES),
        )
        place = (listener.family, listener.type, listener.proto, listener.getsockname())
        super().__init__(
            application,
            {},
            True,
            listener,
            dispatcher=Dispatcher(),
            adj=adj,
            bind_socket=False,
            sockinfo=place,
        )

    def poll_once(self, timeout: float) -> None:
        """Runs one iteration of the event loop, waiting up to `timeout` seconds."""
        self.asyncore.loop(timeout=timeout, map=self._map, use_poll=True, count=1)

    def maintenance(self, now: float) -> None:
        """Ends late requests and slow readers, and the oldest answers above the memory limit;
        called every second."""
        super().maintenance(now)
        now = time.monotonic()
        for channel in list(self.active_channels.values()):
            if (request := channel.request) and (refused := request.late(now)):
                channel.refuse(refused)
        slow = {channel for channel in self.active_channels.values() if channel.is_slow_reader(now)}
        waiting = sorted(
            (one for one in self.active_channels.values() if one.writes_since),
            key=lambda one: one.writes_since,
        )
        over = sum(one.total_outbufs_len for one in waiting) - MAX_RESPONSE_BYTES
        for channel in waiting:
            if channel in slow or over > 0:
                over -= channel.total_outbufs_len
                record_slow_reader()
                channel.will_close = True

    def body_take(self, channel: Channel, request: Request, size: int) -> None:
        """Charges a received part of a body to the budget of its sender."""
        budget = self._strangers if find_cached_key(request.environ) is None else self._keyed
        budget.take(
            channel,
            size,
            lambda: channel.refuse(
                RefusalError(
                    "busy", "Too many request bodies are in progress; send it again.", retry_after=5
                )
            ),
        )

    def bodies_release(self, channel: Channel) -> None:
        """Releases the body of a connection that is complete or dropped."""
        self._keyed.release(channel)
        self._strangers.release(channel)
