"""One POST and its answer: a private connection that is never redirected and goes through no proxy but the one that was set, bounded in
time and size."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, urlsplit

from compilewatch.config import Config
from compilewatch.export.http.connection import Address, Attempts, authorization, connected
from compilewatch.export.http.response import HttpAnswer, body_read, head_read
from compilewatch.export.suppress_tracing import suppressed
from compilewatch.lazy_modules import OTLP, TLS, require
from compilewatch.version import __version__
from compilewatch.wire.ack import MARKER, Ack
from compilewatch.wire.codec import DecodeError, decode, deflate

if TYPE_CHECKING:
    from compilewatch.export.http.tls import Tls

PATH = "/api/v1/reports"
TEMPORARY = (408, 425, 429)
"""Refusals that may be over the next time."""


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
    """Posts to a dashboard; each request has a connection of its own. The request is written by hand: libraries that trace HTTP replace the
    methods of `http.client` in the job's process."""

    def __init__(self, endpoint: str, api_key: str, proxy: str = "", path: str = PATH) -> None:
        self._target = Address.of(endpoint)
        self._proxy = Address.of(proxy) if proxy else None
        self._tls: Tls | None = require(TLS).Tls() if self._target.secure else None
        self._attempts = Attempts([], set())
        path = quote(urlsplit(endpoint).path.rstrip("/"), safe="/%:@!$&'()*+,;=~") + path
        direct = self._target.secure or self._proxy is None
        headers = {
            "Host": self._target.name,
            **({"Authorization": f"Bearer {api_key}"} if api_key else {}),
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "User-Agent": f"compilewatch/{__version__}",
            "Accept": "application/json",
            "Connection": "close",
        }
        lines = [f"POST {path if direct else 'http://' + self._target.name + path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._head = "\r\n".join(lines + ([] if direct else authorization(self._proxy)))

    def send(self, body: bytes) -> Answer:
        """Posts the request, and reads what the dashboard says of it."""
        return _understood(*self.exchange(body))

    def exchange(self, body: bytes) -> tuple[HttpAnswer, bytes]:
        """Posts the JSON, within 3 s for the connection, 5 s for a read and 8 s in all, after the name was looked up."""
        packed = deflate(body)
        try:
            if self._tls is not None:
                self._tls.prepare()
            with (
                suppressed(),
                connected(self._target, self._proxy, self._tls, self._attempts) as connection,
            ):
                connection.write(
                    f"{self._head}\r\nContent-Length: {len(packed)}\r\n\r\n".encode("latin-1")
                    + packed
                )
                reader = connection.reader()
                answer = head_read(reader)
                return answer, body_read(reader, answer)
        except OSError as error:
            if self._tls is not None:
                self._tls.failed(error)
            raise

    def interrupt(self) -> None:
        """Has the request that is under way fail at once; looking up a name cannot be ended."""
        for one in list(self._attempts.opened):
            one.interrupt()


class Aside:
    """Releases the caller's lock during a request, so that another thread can take it."""

    def __init__(self, transport: Transport, turn: threading.Lock) -> None:
        self._transport = transport
        self._turn = turn

    def send(self, body: bytes) -> Answer:
        """Sends the request without holding the lock."""
        self._turn.release()
        try:
            return self._transport.send(body)
        finally:
            self._turn.acquire()

    def interrupt(self) -> None:
        """Interrupts the request in progress."""
        self._transport.interrupt()


def transport_of(config: Config, turn: threading.Lock | None = None) -> Transport:
    """Creates the transport for this configuration; `turn` is a lock that the caller holds."""
    if config.file is not None:
        return FileTransport(config.file)
    transport = http_of(config)
    return transport if turn is None else Aside(transport, turn)


def http_of(config: Config) -> HttpTransport:
    """To a dashboard, or to whoever takes OpenTelemetry's metrics."""
    if config.otlp is None:
        return HttpTransport(config.endpoint, config.api_key, config.proxy)
    found: HttpTransport = require(OTLP).OtlpTransport(config.otlp, config.api_key, config.proxy)
    return found


def _understood(response: HttpAnswer, body: bytes) -> Answer:
    answer = Answer(response.status, retry_after=response.headers.get("retry-after", ""))
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or type(data.get("cw")) is not int or data["cw"] != MARKER:
        answer.problem = f"HTTP {response.status}, but not from a compilewatch dashboard"
        return answer
    if response.status != 200:
        answer.code = str(data.get("code", ""))[:100]
        answer.final = 400 <= response.status < 500 and response.status not in TEMPORARY
        answer.problem = (
            f"HTTP {response.status} {answer.code}: {str(data.get('detail', ''))[:300]}"
        )
        return answer
    try:
        answer.ack = decode(Ack, data)
    except DecodeError as error:
        answer.problem = f"an answer that cannot be read: {error}"
    return answer
