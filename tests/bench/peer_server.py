"""The server for the three clients of bench_peers: responds to each in its own protocol or not at
all, and counts the calls that arrive."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from compilewatch.wire.codec import inflate


class PeerServer:
    """The collector of one client; `mode` is `up`, `html` (a proxy's page for every request) or
    `slow` (a response takes three seconds)."""

    def __init__(self) -> None:
        self.mode = "up"
        self.port = _free_port()
        self._windows: dict[tuple[str, int], int] = {}
        self._others = 0
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """The URL that the client sends to."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def delivered(self) -> int:
        """Calls that arrived and were kept; each window of the agent counts once."""
        return sum(self._windows.values()) + self._others

    def up(self) -> None:
        """Responds from now on."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def away(self) -> None:
        """Closes the listener."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def take(self, path: str, encoding: str, body: bytes) -> bytes:
        """Counts the calls of a request and responds in the client's protocol."""
        with self._lock:
            if path.endswith("/reports"):
                return self._reports(json.loads(inflate(body)))
            body = gzip.decompress(body) if encoding == "gzip" else body
            if "/envelope" in path:
                self._others += sum(
                    line.startswith(b'{"type":"event"') for line in body.splitlines()
                )
                return b"{}"
            if path.endswith("/v1/metrics"):
                return b""
            from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
                ExportTraceServiceRequest,
            )

            spans = ExportTraceServiceRequest.FromString(body).resource_spans
            self._others += sum(len(scope.spans) for one in spans for scope in one.scope_spans)
            return b""

    def _reports(self, data: dict) -> bytes:  # type: ignore[type-arg]
        for report in data["reports"]:
            calls = sum(region["calls"] for region in report.get("regions", []))
            self._windows[data["instance"]["id"], report["seq"][0]] = calls
        ranges = [report["seq"] for report in data["reports"]]
        highest = max((seq[1] for seq in ranges), default=0)
        return json.dumps(
            {"cw": 1, "acked": ranges, "next_seq": highest + 1, "commands": []}
        ).encode()


def _handler(server: PeerServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if server.mode == "html":
                kind, answer = "text/html", b"<html>Welcome to the proxy</html>"
            else:
                kind = "application/json"
                answer = server.take(self.path, self.headers.get("Content-Encoding", ""), body)
            if server.mode == "slow":
                time.sleep(3.0)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            with suppress(OSError):  # the client may have closed the connection
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Writes no log."""

    return Handler


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
