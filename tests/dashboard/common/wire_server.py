"""Real sockets for tests of the outbound client: a server that answers with any bytes, and a canary
that must receive nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

Handler = Callable[[socket.socket], None]


class WireServer:
    """Answers every connection with one handler, and counts the connections."""

    def __init__(self, handler: Handler, listener: socket.socket) -> None:
        self.connections = 0
        self.port: int = listener.getsockname()[1]
        self._handler, self._listener = handler, listener
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T0/B0/secret-part"

    @property
    def allow(self) -> tuple[str, ...]:
        return (f"127.0.0.1:{self.port}",)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self._handler(connection)


@contextlib.contextmanager
def wire_server(handler: Handler, address: str = "127.0.0.1") -> Iterator[WireServer]:
    """A server on a free port, closed at the end; `::` listens on all IPv4 and IPv6 addresses."""
    if address == "::":
        listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    else:
        listener = socket.create_server((address, 0))
    try:
        yield WireServer(handler, listener)
    finally:
        # A close alone would not wake the accepting thread.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def request_read(connection: socket.socket) -> bytes:
    """A whole request: headers, and the body that they announce."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (part := connection.recv(65536)):
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ),
        0,
    )
    while len(body) < length and (part := connection.recv(65536)):
        body += part
    return head + b"\r\n\r\n" + body


def answering(*parts: bytes) -> Handler:
    """A handler that reads the request, sends the parts and closes."""

    def handle(connection: socket.socket) -> None:
        request_read(connection)
        for part in parts:
            connection.sendall(part)

    return handle
