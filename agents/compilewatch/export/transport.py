"""Transport: sends one request and reads its answer.

Each HTTP request has a connection of its own, with limits in time and size. The agent follows no
redirect, and uses no proxy but the configured one.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, urlsplit

from compilewatch.config import Config
from compilewatch.export.http.connection import (
    Address,
    DialState,
    build_proxy_headers,
    open_connection,
)
from compilewatch.export.http.response import HttpResponse, read_response
from compilewatch.export.suppress_tracing import suppress_spans
from compilewatch.lazy_modules import OTLP, TLS, require
from compilewatch.version import __version__
from compilewatch.wire.ack import MARKER, Ack
from compilewatch.wire.codec import DecodeError, decode, deflate

if TYPE_CHECKING:
    from compilewatch.export.http.tls import Tls

PATH = "/api/v1/reports"
TEMPORARY_STATUSES = (408, 425, 429)
"""Refusals that a later attempt may not meet."""


@dataclass(slots=True)
class Answer:
    """The result of a request.

    `ack` is set only if a compilewatch dashboard listed the windows that it holds; `final` only if
    it refused the request permanently.
    """

    status: int
    ack: Ack | None = None
    final: bool = False
    retry_after: str = ""
    problem: str = ""
    code: str = ""
    advice: str = ""
    """Advice for the operator if something other than the dashboard answered."""


class Transport(Protocol):
    """Destination of requests; any thread may call `interrupt`."""

    def send(self, body: bytes) -> Answer:
        """Sends the JSON of a request; raises OSError if there is no answer."""
        ...

    def interrupt(self) -> None:
        """Makes the request in progress fail immediately."""
        ...


class FileTransport:
    """Appends each request to a file as one line; a written line counts as acknowledged."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def send(self, body: bytes) -> Answer:
        """Appends one complete line."""
        with self._path.open("ab", buffering=0) as file:
            file.write(body + b"\n")
        ranges = [tuple(report["seq"]) for report in json.loads(body)["reports"]]
        return Answer(200, ack=Ack(ranges, ranges[-1][1] + 1))

    def interrupt(self) -> None:
        """Does nothing: a file is written immediately."""


class HttpTransport:
    """Posts to a dashboard, each request over a new connection. The class writes the request line
    and headers itself: libraries that trace HTTP replace the methods of `HTTPConnection`."""

    def __init__(self, endpoint: str, api_key: str, proxy: str = "", path: str = PATH) -> None:
        self._target = Address.from_url(endpoint)
        self._proxy = Address.from_url(proxy) if proxy else None
        self._tls: Tls | None = require(TLS).Tls() if self._target.secure else None
        self._state = DialState([], set())
        authority = self._target.authority
        path = quote(urlsplit(endpoint).path.rstrip("/"), safe="/%:@!$&'()*+,;=~") + path
        direct = self._target.secure or self._proxy is None
        headers = {
            "Host": authority,
            **({"Authorization": f"Bearer {api_key}"} if api_key else {}),
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "User-Agent": f"compilewatch/{__version__}",
            "Accept": "application/json",
            "Connection": "close",
        }
        lines = [f"POST {path if direct else f'http://{authority}{path}'} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._head = "\r\n".join(lines + ([] if direct else build_proxy_headers(self._proxy)))

    def send(self, body: bytes) -> Answer:
        """Posts the request and parses the dashboard's answer."""
        return parse_answer(self.exchange(body))

    def exchange(self, body: bytes) -> HttpResponse:
        """Posts the JSON and returns the response. After the look-up of the name, the limits are
        3 s for the connection, 5 s for a read and 8 s in all."""
        packed = deflate(body)
        head = f"{self._head}\r\nContent-Length: {len(packed)}\r\n\r\n".encode("latin-1")
        try:
            if self._tls is not None:
                self._tls.load_certificates()  # before the deadline starts
            with (
                suppress_spans(),
                open_connection(self._target, self._proxy, self._tls, self._state) as connection,
            ):
                connection.write(head + packed)
                return read_response(connection)
        except OSError as error:
            if self._tls is not None:
                self._tls.forget_certificates(error)
            raise

    def interrupt(self) -> None:
        """Makes the request in progress fail at once, except during the look-up of a name."""
        for one in list(self._state.opened):
            one.interrupt()


class UnlockedTransport:
    """Releases the caller's lock during a request, so that another thread can take it."""

    def __init__(self, transport: Transport, lock: threading.Lock) -> None:
        self._transport = transport
        self._lock = lock

    def send(self, body: bytes) -> Answer:
        """Sends the request without holding the lock."""
        self._lock.release()
        try:
            return self._transport.send(body)
        finally:
            self._lock.acquire()

    def interrupt(self) -> None:
        """Interrupts the request in progress."""
        self._transport.interrupt()


def create_transport(config: Config, lock: threading.Lock | None = None) -> Transport:
    """Creates the transport for this configuration; `lock` is a lock that the caller holds."""
    if config.file is not None:
        return FileTransport(config.file)
    transport = create_http_transport(config)
    return transport if lock is None else UnlockedTransport(transport, lock)


def create_http_transport(config: Config) -> HttpTransport:
    """Creates the transport to a dashboard or to an OpenTelemetry collector."""
    if config.otlp is None:
        return HttpTransport(config.endpoint, config.api_key, config.proxy)
    otlp: type[HttpTransport] = require(OTLP).OtlpTransport
    return otlp(config.otlp, config.api_key, config.proxy)


def parse_answer(response: HttpResponse) -> Answer:
    """Reads an acknowledgement or a refusal; only the dashboard's marker makes it count."""
    answer = Answer(response.status, retry_after=response.headers.get("retry-after", ""))
    try:
        data = json.loads(response.body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or type(data.get("cw")) is not int or data["cw"] != MARKER:
        answer.problem = f"HTTP {response.status}, but not from a compilewatch dashboard"
        return answer
    if response.status != 200:
        answer.code = str(data.get("code", ""))[:100]
        answer.final = 400 <= response.status < 500 and response.status not in TEMPORARY_STATUSES
        detail = str(data.get("detail", ""))[:300]
        answer.problem = f"HTTP {response.status} {answer.code}: {detail}"
        return answer
    try:
        answer.ack = decode(Ack, data)
    except DecodeError as error:
        answer.problem = f"an answer that cannot be read: {error}"
    return answer
