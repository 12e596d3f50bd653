"""Fixtures of the report endpoint on a real socket, and a client that can send any bytes."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from threading import Event, Thread
from typing import Any

import pytest
from compilewatch.wire.codec import dumps_request
from compilewatch.wire.messages import Request
from waitress.server import create_server

from dashboard.ingest.group_commit import COMMITTER
from dashboard.wsgi import application

PATH = "/api/v1/reports"
LIVENESS = 60


@dataclass
class Answer:
    """A response of the server."""

    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The JSON of the answer."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def outcome(self) -> tuple[int, str]:
        """Status and code of an error in the one shape."""
        assert self.json["cw"] == 1 and self.json["detail"], self.body
        return self.status, self.json["code"]


@dataclass
class Endpoint:
    """An address and the default key."""

    port: int
    key: str

    def send(
        self,
        body: bytes,
        *,
        headers: Mapping[str, str | None] | None = None,
        method: str = "POST",
        path: str = PATH,
    ) -> Answer:
        """Sends the bytes unchanged; a header with the value None is omitted."""
        wanted: dict[str, str | None] = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            **(headers or {}),
        }
        connection = HTTPConnection("127.0.0.1", self.port, timeout=LIVENESS)
        try:
            connection.request(
                method,
                path,
                body,
                {name: value for name, value in wanted.items() if value is not None},
            )
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def report(self, request: Request) -> Answer:
        """Sends a request as the agent does."""
        return self.send(dumps_request(request))

    def send_json(self, text: str | bytes) -> Answer:
        """Sends JSON or malformed JSON text without compression."""
        return self.send(
            text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text,
            headers={"Content-Encoding": None},
        )

    def exchange_bytes(self, data: bytes) -> bytes:
        """Sends raw bytes, closes the sending half, and reads the whole response."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=LIVENESS) as line:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: line.recv(65536), b""))


@pytest.fixture
def endpoint(transactional_db: None, ingest_key: str) -> Iterator[Endpoint]:
    """The whole application on a real socket."""
    server = create_server(
        application, host="127.0.0.1", port=0, threads=8, max_request_body_size=2 << 20
    )
    stopping = Event()

    def serve() -> None:
        while not stopping.is_set():
            server.asyncore.loop(timeout=0.1, map=server._map, count=1)
        server.task_dispatcher.shutdown()
        server.close()

    thread = Thread(target=serve, name="test-server", daemon=True)
    thread.start()
    try:
        yield Endpoint(int(server.effective_port), ingest_key)
    finally:
        stopping.set()
        thread.join(timeout=LIVENESS)
        COMMITTER.stop()  # writes the refusal counts while the test still has a database
