"""A reverse proxy on real sockets: serves the dashboard under a path, and cuts slow requests."""

from __future__ import annotations

import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOP = {"connection", "keep-alive", "transfer-encoding", "host"}


class ReverseProxy:
    """Listens until closed; passes requests to the port `target`. Other paths belong to other
    programs: 404."""

    def __init__(self, *, prefix: str = "", strips: bool = True, cut: float = 60.0) -> None:
        self.target, self.prefix, self.strips, self.cut = 0, prefix, strips, cut
        self.strayed: list[str] = []
        """Paths requested outside the prefix: a wrong link of the dashboard."""
        self.cookies_elsewhere: list[str] = []
        """Cookies that a browser sent to other programs of this host name."""
        self.passed: list[tuple[str, int, float]] = []
        """Path, status and seconds of each request; 504 if the dashboard exceeded the limit."""
        self.idle_cuts = 0
        """Number of idle kept connections that the proxy closed."""
        self._server = _server_of(self)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """The address of the dashboard for people and agents."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.prefix}"

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()

    def ask(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """The dashboard's response."""
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
            """Ignores clients that disconnect."""

    return Server(("127.0.0.1", 0), Handler)
