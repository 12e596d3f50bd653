"""A reverse proxy on real sockets, as an operator has one: the dashboard is under a path beside
others, and what takes too long is cut."""

from __future__ import annotations

import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOP = {"connection", "keep-alive", "transfer-encoding", "host"}


class ReverseProxy:
    """Listens until it is closed; `target` is the port it passes requests on to. What is not under
    its path is another program's: 404."""

    def __init__(self, *, prefix: str = "", strips: bool = True, cut: float = 60.0) -> None:
        self.target, self.prefix, self.strips, self.cut = 0, prefix, strips, cut
        self.strayed: list[str] = []
        """What was asked for outside the path: a link of ours that led to somebody else."""
        self.cookies_elsewhere: list[str] = []
        """Cookies that a browser brought to other programs of this name."""
        self.passed: list[tuple[str, int, float]] = []
        """Path, status and seconds of each request; 504 where the dashboard took longer than the
        cut."""
        self.idle_cuts = 0
        """Kept connections that this closed because nobody said anything on them."""
        self._server = _server_of(self)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """How people and agents reach the dashboard."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.prefix}"

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()

    def ask(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """What the dashboard answers."""
        begun, inside = time.monotonic(), path.removeprefix(self.prefix) if self.strips else path
        onward = http.client.HTTPConnection("127.0.0.1", self.target, timeout=self.cut)
        try:
            onward.request(method, inside or "/", body or None, headers)
            answer = onward.getresponse()
            found = answer.status, answer.getheaders(), answer.read()
        except TimeoutError:
            found = 504, [], b"The server took too long."
        finally:
            onward.close()
        self.passed.append((path, found[0], time.monotonic() - begun))
        return found


def _server_of(proxy: ReverseProxy) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = proxy.cut

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path != proxy.prefix and not self.path.startswith(f"{proxy.prefix}/"):
                proxy.strayed.append(self.path)
                proxy.cookies_elsewhere += self.headers.get_all("Cookie", [])
                self._answer(404, [], b"another program")
                return
            passed_on = {
                name: value for name, value in self.headers.items() if name.lower() not in HOP
            }
            headers = passed_on | {
                "Host": self.headers["Host"],
                "X-Forwarded-For": self.client_address[0],
                "X-Forwarded-Proto": "http",
            }
            self._answer(*proxy.ask(self.command, self.path, body, headers))

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in {*HOP, "content-length"}:
                    self.send_header(name, value)
            if status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _pass

        def log_error(self, format: str, *args: Any) -> None:
            proxy.idle_cuts += "timed out" in format

        def log_message(self, format: str, *args: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that has gone is no news."""

    return Server(("127.0.0.1", 0), Handler)
