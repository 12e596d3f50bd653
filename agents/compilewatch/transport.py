"""One POST and its answer: a private connection by http.client, never redirected, never through a proxy, bounded in time and size."""

from __future__ import annotations

import http.client
import io
import json
import socket
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from compilewatch import __version__
from compilewatch.wire.ack import Ack
from compilewatch.wire.codec import DecodeError, decode, deflate

CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 3.0, 5.0, 8.0
MAX_ANSWER = 64 << 10
PATH = "/api/v1/reports"


@dataclass(slots=True)
class Answer:
    """What came back. `ack` only if the server said in our own words which windows it holds; `final` if it refused in our own words."""

    status: int
    ack: Ack | None = None
    final: bool = False
    retry_after: str = ""
    problem: str = ""
    code: str = ""


class Transport(Protocol):
    """Where requests go."""

    def send(self, body: bytes) -> Answer:
        """Hands over the JSON of a request; raises OSError or http.client.HTTPException if there was no answer."""
        ...


class FileTransport:
    """Appends each request as one line; a line that is written is acknowledged."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def send(self, body: bytes) -> Answer:
        """One append of one whole line."""
        with self._path.open("ab", buffering=0) as file:
            file.write(body + b"\n")
        ranges = [tuple(report["seq"]) for report in json.loads(body)["reports"]]
        return Answer(200, ack=Ack(ranges, ranges[-1][1] + 1))


class HttpTransport:
    """Posts to a dashboard; each request has a connection of its own."""

    def __init__(self, endpoint: str, api_key: str) -> None:
        parts = urlsplit(endpoint)
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/") + PATH
        self._headers = {
            "Authorization": f"Bearer {api_key}",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "User-Agent": f"compilewatch/{__version__}",
            "Connection": "close",
        }

    def send(self, body: bytes) -> Answer:
        """Posts the request, within 3 s for the connection, 5 s for a read and 8 s in all."""
        deadline = time.monotonic() + TOTAL_SECONDS
        connection = self._connection()
        try:
            connection.connect()
            connection.sock.settimeout(READ_SECONDS)
            connection.request("POST", self._path, deflate(body), self._headers)
            response = http.client.HTTPResponse(_TimedSocket(connection.sock, deadline), method="POST")  # type: ignore[arg-type]
            response.begin()
            return _understood(response, _read(response))
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=CONNECT_SECONDS, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_SECONDS)


class _TimedSocket(io.RawIOBase):
    """What an answer is read from: each read within 5 s, and all of them, headers included, before the deadline."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        """What HTTPResponse asks a socket for."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """One read of what has come."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError(f"the answer took longer than {TOTAL_SECONDS:.0f} s")
        self._sock.settimeout(min(READ_SECONDS, remaining))
        return self._sock.recv_into(buffer)


def _read(response: http.client.HTTPResponse) -> bytes:
    """The body, up to one byte more than its cap."""
    body = response.read(MAX_ANSWER + 1)
    if response.length and len(body) <= MAX_ANSWER:
        raise http.client.IncompleteRead(body, response.length)
    return body


def _understood(response: http.client.HTTPResponse, body: bytes) -> Answer:
    answer = Answer(response.status, retry_after=response.getheader("Retry-After") or "")
    try:
        data = json.loads(body) if len(body) <= MAX_ANSWER else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.get("cw") != 1:
        answer.problem = f"HTTP {response.status}, but not from a compilewatch dashboard"
        return answer
    if response.status != 200:
        answer.code = str(data.get("code", ""))[:100]
        answer.final = 400 <= response.status < 500
        answer.problem = f"HTTP {response.status} {answer.code}: {str(data.get('detail', ''))[:300]}"
        return answer
    try:
        answer.ack = decode(Ack, data)
    except DecodeError as error:
        answer.problem = f"an answer that cannot be read: {error}"
    return answer
