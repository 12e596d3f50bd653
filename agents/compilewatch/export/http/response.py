"""HTTP response reader: `http.client` parses, the socket limits the bytes and the time."""

from __future__ import annotations

from http.client import HTTPException, HTTPResponse
from typing import BinaryIO, NamedTuple, Protocol

MAX_RESPONSE_BYTES = 64 << 10
"""The limit of a response, headers included."""
_INTERIM = (102, 103)
"""Statuses that precede the final one; `http.client` skips 100 itself."""


class ResponseSource(Protocol):
    """The socket of the response, as far as the reader uses it."""

    ended: bool

    def makefile(self, mode: str) -> BinaryIO:
        """A reader of the bytes."""


class ResponseError(OSError):
    """The response is not HTTP, is cut off, or is too long."""


class HttpResponse(NamedTuple):
    """A whole response. Header names are in lower case; the first of two equal names counts."""

    status: int
    headers: dict[str, str]
    body: bytes


def read_response(connection: ResponseSource, *, with_body: bool = True) -> HttpResponse:
    """Reads one response; raises OSError."""
    # Libraries that trace HTTP replace the methods of HTTPConnection, and leave this class alone.
    response = HTTPResponse(connection, method="POST")  # type: ignore[arg-type]
    try:
        response.begin()
        while response.status in _INTERIM:
            response.headers = None  # type: ignore[assignment] # begin() reads the next status
            response.begin()
        if connection.ended:
            raise ResponseError("the connection ended inside the headers of a response")
        # Without a size, older Pythons allocate as many bytes as Content-Length announces.
        body = response.read(MAX_RESPONSE_BYTES) if with_body else b""
    except (HTTPException, ValueError) as error:
        why = f"{type(error).__name__}: {str(error)[:60]!r}"
        raise ResponseError(f"not a valid HTTP response: {why}") from None
    if with_body and response.length:
        raise ResponseError(f"a response ended {response.length} bytes early")
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        headers.setdefault(name.lower(), value.strip())
    return HttpResponse(response.status, headers, body)
