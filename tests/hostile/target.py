"""The report endpoint of a running server, and a sender that can write any bytes to its socket."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import psutil
from compilewatch.wire.codec import deflate, dumps

from tests.dashboard.requests import instance_id, request_make
from tests.flow.stack import Stack

PATH = "/api/v1/reports"
LIVENESS = 60

Headers = dict[str, str | None]


@dataclass(frozen=True)
class Answer:
    """Data received before the connection closed; status 0 if there was none."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> dict[str, Any]:
        """The JSON object of the response, empty if it is not one."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def code(self) -> str:
        """The code of one of our errors."""
        return str(self.data.get("code", "")) if self.data.get("cw") == 1 else ""


@dataclass
class Target:
    """A dashboard, its key, and the instance number that identifies a case."""

    stack: Stack
    key: str
    others: dict[str, str] = field(default_factory=dict)
    number: int = 0

    @property
    def instance(self) -> str:
        """The instance of the current case."""
        return instance_id(self.number)

    def data(self, **identity: Any) -> dict[str, Any]:
        """The JSON of a good request of this case, for a case to corrupt."""
        found: dict[str, Any] = json.loads(
            dumps(request_make(end=time.time(), instance=self.number, **identity))
        )
        return found

    def head(
        self,
        length: int | str | None,
        *,
        method: str = "POST",
        path: str = PATH,
        version: str = "HTTP/1.1",
        **changed: str | None,
    ) -> bytes:
        """The head of a request; a header with value None is omitted, and `_` in its name becomes a
        dash."""
        headers: Headers = {
            "Host": f"127.0.0.1:{self.stack.port}",
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Content-Length": None if length is None else str(length),
            "Connection": "close",
        }
        headers.update({name.replace("_", "-"): value for name, value in changed.items()})
        lines = [
            f"{method} {path} {version}",
            *(f"{name}: {value}" for name, value in headers.items() if value is not None),
        ]
        return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n"

    def post(
        self,
        body: bytes | str | dict[str, Any],
        *,
        method: str = "POST",
        path: str = PATH,
        **changed: str | None,
    ) -> Answer:
        """A request with the right length and good headers unless changed; a dict becomes JSON."""
        text = json.dumps(body) if isinstance(body, dict) else body
        packed = text.encode() if isinstance(text, str) else text
        changed.setdefault("Content_Length", str(len(packed)))
        return self.raw([self.head(None, method=method, path=path, **changed) + packed])

    def gzip(self, body: bytes | dict[str, Any]) -> Answer:
        """A compressed body; bytes are sent as they are."""
        return self.post(
            deflate(json.dumps(body).encode()) if isinstance(body, dict) else body,
            Content_Encoding="gzip",
        )

    def raw(
        self, parts: Iterable[bytes], *, pause: float = 0.0, half_close: bool = False
    ) -> Answer:
        """Sends any bytes and reads until the server closes. A server that closes early has still
        answered."""
        with socket.create_connection(
            ("127.0.0.1", self.stack.port), timeout=LIVENESS
        ) as connection:
            try:
                for part in parts:
                    connection.sendall(part)
                    if pause:
                        time.sleep(pause)
                if half_close:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            return answer_read(connection)

    def ranges(self, instance: str | None = None) -> list[list[int]]:
        """The sequence ranges in the database for an instance."""
        found = self.stack.rows(
            f"SELECT ranges FROM ingest_sender WHERE instance_id = '{instance or self.instance}'"
        )
        if not found:
            return []
        value = found[0][0]
        pairs: list[list[int]] = json.loads(value) if isinstance(value, str) else value
        return pairs


def answer_read(connection: socket.socket) -> Answer:
    """The first response on the connection, up to its end."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except OSError:
        pass
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        return Answer(0, {}, received)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines[1:])
    }
    return Answer(int(words[1]), headers, body)


def processes(stack: Stack) -> list[psutil.Process]:
    """All processes of the dashboard."""
    parents = [psutil.Process(process.pid) for process in stack.processes.values()]
    return [process for parent in parents for process in (parent, *parent.children(recursive=True))]
