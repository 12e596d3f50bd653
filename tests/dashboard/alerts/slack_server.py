"""A local HTTP server that replaces Slack or another webhook receiver: it records every request and
gives the configured answer."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, str, dict[str, str]]
OK: Reply = (200, "ok", {})


@dataclass
class StandIn:
    """Received requests, and the answers: the next of `answers`, then `always`. Status 0 hangs up
    instead."""

    port: int
    answers: list[Reply] = field(default_factory=list)
    always: Reply = OK
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    pause: Callable[[], object] = bool
    """Called between a message and its answer."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T012/B034/wJalrXUtnFEMI"

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    @property
    def titles(self) -> list[str]:
        return [message["blocks"][0]["text"]["text"] for message in self.messages]


@contextlib.contextmanager
def stand_in() -> Iterator[StandIn]:
    """Serves on a free port until the context ends."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                record.bodies.append(body)
                record.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, text, headers = record.answers.pop(0) if record.answers else record.always
            record.pause()
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            """Suppresses the access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    record = StandIn(server.server_address[1])
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    ).start()
    try:
        yield record
    finally:
        server.shutdown()
        server.server_close()
