"""WSGI call: runs a WSGI application for an ASGI request with a complete body."""

from __future__ import annotations

import io
import sys
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from dashboard.common.url_prefix import Application

Headers = list[tuple[bytes, bytes]]
_HEADER_VARIABLES: dict[bytes, str] = {
    b"content-type": "CONTENT_TYPE",
    b"content-length": "CONTENT_LENGTH",
}
_ENVIRON_DEFAULTS = {
    "wsgi.version": (1, 0),
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
    "SERVER_SOFTWARE": "Granian",
    "SCRIPT_NAME": "",
}


class AsgiResponse(NamedTuple):
    """Status, headers and whole body of an answer."""

    status: int
    headers: Headers
    body: bytes


def build_environ(scope: dict[str, Any]) -> dict[str, Any]:
    """The WSGI environ of the request, without its body. Repeated headers are joined."""
    environ = {
        **_ENVIRON_DEFAULTS,
        "REQUEST_METHOD": scope["method"],
        "PATH_INFO": _path(scope["raw_path"]),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": scope["server"][0],
        "SERVER_PORT": scope["server"][1],
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": scope["client"][0],
        "wsgi.url_scheme": scope["scheme"],
    }
    for name, value in scope["headers"]:
        key = _HEADER_VARIABLES.get(name) or "HTTP_" + name.decode("latin-1").upper().replace(
            "-", "_"
        )
        text = value.decode("latin-1")
        environ[key] = (
            f"{environ[key]}{';' if key == 'HTTP_COOKIE' else ','}{text}"
            if key in environ
            else text
        )
    return environ


def _path(raw: bytes) -> str:
    return (unquote_to_bytes(raw) if b"%" in raw else raw).decode("latin-1")


def call_application(
    application: Application, environ: dict[str, Any], body: bytes
) -> AsgiResponse:
    """Calls the application and returns its whole answer."""
    environ["wsgi.input"] = io.BytesIO(body)
    started: list[Any] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], exc_info: object = None
    ) -> None:
        started[:] = status, headers

    found = application(environ, start_response)
    try:
        text = b"".join(found)
    finally:
        if close := getattr(found, "close", None):
            close()
    status, headers = started
    return AsgiResponse(
        int(status[:3]),
        encode_headers(headers),
        b"" if environ["REQUEST_METHOD"] == "HEAD" else text,
    )


def encode_headers(headers: list[tuple[str, str]]) -> Headers:
    """Encodes headers for ASGI."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
