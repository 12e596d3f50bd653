"""A small dashboard on a real socket: it accepts reports, answers as a test requests, and keeps the
acknowledged reports."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from compilewatch.wire.codec import inflate, loads
from compilewatch.wire.messages import Region, Report, Request

Reply = tuple[int, dict[str, str], bytes]
Script = Callable[[dict[str, Any]], Reply | None]
PATIENCE = 60.0


class Dashboard:
    """Acknowledges everything, unless a queued script answers a request otherwise (None from a
    script: acknowledge after all)."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.scripts: list[Script] = []
        self.commands: list[Any] = []
        """The commands in every acknowledgement."""
        self.acked: dict[tuple[str, int, int], dict[str, Any]] = {}
        self._news = threading.Condition()
        self._server = Server(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Reply:
        data = json.loads(inflate(body))
        with self._news:
            self.paths.append(path)
            self.headers.append(headers)
            self.bodies.append(inflate(body))
            self.requests.append(data)
            script = self.scripts.pop(0) if self.scripts else None
            reply = script(data) if script is not None else None
            if reply is None:
                reply = self._acknowledge(data)
            self._news.notify_all()
        return reply

    def _acknowledge(self, data: dict[str, Any]) -> Reply:
        ranges = [report["seq"] for report in data["reports"]]
        for report in data["reports"]:
            self.acked.setdefault((data["instance"]["id"], *report["seq"]), report)
        body = {
            "cw": 1,
            "acked": ranges,
            "next_seq": max((last for _, last in ranges), default=0) + 1,
            "commands": self.commands,
        }
        return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()

    def wait(self, until: Callable[[Dashboard], bool]) -> None:
        """Waits until the condition holds; the limit only ends a broken test."""
        with self._news:
            assert self._news.wait_for(lambda: until(self), PATIENCE), (
                f"the condition never held; {len(self.requests)} requests arrived"
            )

    def reports(self) -> list[Report]:
        """The acknowledged reports, each window once."""
        shell = {
            "v": 1,
            "sent": 0.0,
            "instance": {"id": "x", "started": 0.0, "model": "m", "version": "v"},
        }
        body = json.dumps({**shell, "reports": list(self.acked.values())}).encode()
        return loads(Request, body).reports

    def regions(self, name: str) -> list[Region]:
        return [
            region for report in self.reports() for region in report.regions if region.name == name
        ]

    def calls(self, name: str) -> int:
        return sum(region.calls for region in self.regions(name))


class Server(ThreadingHTTPServer):
    """Accepts as many connections at once as a test has processes."""

    request_queue_size = 256


def _handler(dashboard: Dashboard) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, answer = dashboard.answer(self.path, dict(self.headers.items()), body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    return Handler


def assert_sent_once(dashboard: Dashboard) -> None:
    """Each window number belongs to one window: a repeated window is identical to the first."""
    sent: dict[tuple[str, int], object] = {}
    for request in dashboard.requests:
        for report in request["reports"]:
            assert sent.setdefault((request["instance"]["id"], report["seq"][0]), report) == report
