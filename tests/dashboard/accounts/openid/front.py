"""Proxy in front of the real provider: changes selected answers and passes everything else
through."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from tests.dashboard.accounts.openid.provider import KEY

Claims = dict[str, Any]
CONFIG, TOKEN, KEYS, PERSON = (
    "/.well-known/openid-configuration",
    "/token/",
    "/.well-known/jwks.json",
    "/userinfo/",
)
PLACES = (CONFIG, TOKEN, KEYS, PERSON)


class Front:
    """`changes` maps an endpoint to a function that changes its JSON answer; `raw` maps an endpoint
    to a function that answers on the open connection instead."""

    def __init__(self, behind: str) -> None:
        self.behind, self.address = behind, ""
        self.changes: dict[str, Callable[[Any], Any]] = {}
        self.raw: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.asked: list[str] = []
        self._one = threading.Lock()  # the provider's SQLite accepts one writer at a time

    def forge(self, make: Callable[[Claims], str]) -> None:
        """Replaces the ID token with the result of `make` for the genuine claims."""

        def change(answer: Any) -> Any:
            claims = jwt.decode(answer["id_token"], options={"verify_signature": False})
            return answer | {"id_token": make(claims)}

        self.changes[TOKEN] = change

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Forwards the request under the proxy's own host name, so that all URLs in the answer lead
        to the proxy."""
        place = next((place for place in PLACES if urlsplit(handler.path).path.endswith(place)), "")
        self.asked.append(place)
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        if place in self.raw:
            self.raw[place](handler)
            return
        parts = urlsplit(self.behind)
        headers = {
            name: text
            for name, text in handler.headers.items()
            if name.lower() not in ("connection", "accept-encoding")
        }
        there = f"http://{parts.netloc}{handler.path}"
        with self._one:
            response = httpx.request(
                handler.command,
                there,
                headers=headers | {"Accept-Encoding": "identity"},
                content=body,
                timeout=60,
            )
        body = response.content
        if place in self.changes and response.status_code == 200:
            body = json.dumps(self.changes[place](response.json())).encode()
        send(
            handler,
            response.status_code,
            body,
            [(name, text) for name, text in response.headers.multi_items() if name not in _OWN],
        )


_OWN = ("content-length", "connection", "date", "server", "transfer-encoding")


def send(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: list[tuple[str, str]]
) -> None:
    """Sends a complete answer."""
    handler.send_response(status)
    for name, text in headers:
        handler.send_header(name, text)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def signed(
    claims: Claims, *, key: Any = None, algorithm: str = "RS256", kid: str | None = None
) -> str:
    """A token signed as the provider signs it, with the provider's own key by default."""
    own = KEY.export_to_pem(private_key=True, password=None)
    return jwt.encode(
        claims,
        own if key is None else key,
        algorithm=algorithm,
        headers={"kid": kid or KEY.thumbprint()},
    )


@contextmanager
def front_run(behind: str) -> Iterator[Front]:
    """Runs a proxy in front of the provider at this URL."""
    front = Front(behind)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            front.answer(self)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Writes no request log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    front.address = f"http://localhost:{server.server_port}{urlsplit(behind).path}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield front
    finally:
        server.shutdown()
        server.server_close()
