"""A front before the real provider: what it is given to change is changed in the answers, and all
else passes through."""

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
    """`changes` has a function for an answer in JSON, by its place; `raw` has one that answers
    instead, on the open connection."""

    def __init__(self, behind: str) -> None:
        self.behind, self.address = behind, ""
        self.changes: dict[str, Callable[[Any], Any]] = {}
        self.raw: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.asked: list[str] = []
        self._one = threading.Lock()  # the provider's SQLite takes one writer at a time

    def forge(self, make: Callable[[Claims], str]) -> None:
        """The ID token is what `make` makes of the genuine claims."""

        def change(answer: Any) -> Any:
            claims = jwt.decode(answer["id_token"], options={"verify_signature": False})
            return answer | {"id_token": make(claims)}

        self.changes[TOKEN] = change

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Asks the provider under this front's own name, so that all of its addresses lead here."""
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
            said = httpx.request(
                handler.command,
                there,
                headers=headers | {"Accept-Encoding": "identity"},
                content=body,
                timeout=60,
            )
        told = said.content
        if place in self.changes and said.status_code == 200:
            told = json.dumps(self.changes[place](said.json())).encode()
        send(
            handler,
            said.status_code,
            told,
            [(name, text) for name, text in said.headers.multi_items() if name not in _OWN],
        )


_OWN = ("content-length", "connection", "date", "server", "transfer-encoding")


def send(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: list[tuple[str, str]]
) -> None:
    """A whole answer."""
    handler.send_response(status)
    for name, text in headers:
        handler.send_header(name, text)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def signed(
    claims: Claims, *, key: Any = None, algorithm: str = "RS256", kid: str | None = None
) -> str:
    """A token as the provider makes it, with its own key where no other is given."""
    own = KEY.export_to_pem(private_key=True, password=None)
    return jwt.encode(
        claims,
        own if key is None else key,
        algorithm=algorithm,
        headers={"kid": kid or KEY.thumbprint()},
    )


@contextmanager
def front_run(behind: str) -> Iterator[Front]:
    """One before the provider at this address."""
    front = Front(behind)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            front.answer(self)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Nothing on the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    front.address = f"http://localhost:{server.server_port}{urlsplit(behind).path}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield front
    finally:
        server.shutdown()
        server.server_close()
