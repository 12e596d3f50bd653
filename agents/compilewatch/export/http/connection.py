"""Bounded connection: one TCP or TLS connection for one request, with a deadline and a size limit.

The agent's thread opens the connection, to the configured address or proxy and to nothing else.
The connect, each read or write, and the whole request have limits that no peer can exceed.
"""

from __future__ import annotations

import base64
import io
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from compilewatch.export.http.response import MAX_RESPONSE_BYTES, ResponseError, read_response

if TYPE_CHECKING:
    from compilewatch.export.http.tls import Tls

CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 3.0, 5.0, 8.0
_WRITE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Address:
    """A server to connect to; `secure` selects TLS."""

    host: str
    port: int
    secure: bool
    credentials: str = ""

    @classmethod
    def from_url(cls, url: str) -> Address:
        """Reads the address from a URL that the configuration has validated."""
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        user = (
            f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
        )
        return cls(parts.hostname or "", parts.port or (443 if secure else 80), secure, user)

    @property
    def ascii_host(self) -> str:
        """The host as a header writes it."""
        return f"[{self.host}]" if ":" in self.host else self.host.encode("idna").decode()

    @property
    def authority(self) -> str:
        """Host and port as the Host header writes them: a default port is left out."""
        default = 443 if self.secure else 80
        return self.ascii_host if self.port == default else f"{self.ascii_host}:{self.port}"


class HandshakeError(OSError):
    """The peer did not finish the TLS handshake."""


class BoundedSocket:
    """A socket with a deadline on the monotonic clock and a limit on received bytes."""

    def __init__(self, sock: Any, deadline: float) -> None:
        self._sock = sock
        """A socket, or an SSLSocket: a Python without ssl has no such class."""
        self._deadline = deadline
        self._bytes_left = MAX_RESPONSE_BYTES
        self.interrupted = False
        self.ended = False
        """Whether the peer has closed its side."""

    def limit_seconds(self, most: float) -> float:
        """The time limit of the next step; raises TimeoutError after the deadline."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"the request took longer than {TOTAL_SECONDS:.0f} s")
        return min(most, left)

    def write(self, data: bytes) -> None:
        """Sends all of the data."""
        view = memoryview(data)
        while view:
            self._sock.settimeout(self.limit_seconds(READ_SECONDS))
            view = view[self._sock.send(view[:_WRITE_BYTES]) :]

    def receive(self, buffer: Any) -> int:
        """Reads once into the buffer."""
        self._sock.settimeout(self.limit_seconds(READ_SECONDS))
        count: int = self._sock.recv_into(buffer)
        self.ended = not count
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise ResponseError(f"a response of more than {MAX_RESPONSE_BYTES >> 10} KiB")
        return count

    def wrap_tls(self, tls: Tls, host: str) -> BoundedSocket:
        """Returns this connection for TLS, before the handshake."""
        return BoundedSocket(tls.wrap(self._sock, host), self._deadline)

    def do_handshake(self) -> None:
        """Runs the TLS handshake, which verifies the peer's certificate."""
        # This limit covers the whole handshake.
        self._sock.settimeout(self.limit_seconds(READ_SECONDS))
        try:
            self._sock.do_handshake()
        except (TimeoutError, ConnectionError) as error:
            raise HandshakeError(f"the TLS handshake did not finish: {error}") from None

    def interrupt(self) -> None:
        """Makes the current read or write fail at once; another thread calls it."""
        self.interrupted, self._deadline = True, 0.0
        with suppress(OSError):
            # The method of an SSLSocket would continue in plain text.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The reader that `http.client` asks a socket for."""
        return io.BufferedReader(_SocketReader(self))

    def close(self) -> None:
        """Closes the socket."""
        self._sock.close()


class _SocketReader(io.RawIOBase):
    """The socket as a raw file."""

    def __init__(self, bounded: BoundedSocket) -> None:
        self._bounded = bounded

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads once into the buffer."""
        return self._bounded.receive(buffer)


class DialState(NamedTuple):
    """The connections of one sender: the open ones, and the addresses that failed last time."""

    opened: list[BoundedSocket]
    dead: set[Any]


@contextmanager
def open_connection(
    target: Address, proxy: Address | None, tls: Tls | None, state: DialState
) -> Iterator[BoundedSocket]:
    """Connects to the target, through the proxy if there is one, and closes the connection at the
    end of the block. Raises OSError."""
    try:
        connection = _dial(proxy or target, state)
        if tls is not None:
            if proxy is not None:
                _open_tunnel(connection, target, proxy)
            connection = connection.wrap_tls(tls, target.host)
            state.opened.append(connection)
            connection.do_handshake()
        yield connection
    finally:
        while state.opened:
            state.opened.pop().close()


def _dial(address: Address, state: DialState) -> BoundedSocket:
    """Tries each address of the name within one deadline; addresses that failed last time come
    last. The deadline starts after the look-up of the name, because Python cannot cancel it."""
    failure: OSError = OSError(f"{address.host} has no address")
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    deadline = time.monotonic() + TOTAL_SECONDS
    state.dead.intersection_update(one[4] for one in found)
    for one in sorted(found, key=lambda one: one[4] in state.dead):
        try:
            connection = _connect(*one, deadline, state.opened)
        except OSError as error:
            failure = error
            if time.monotonic() >= deadline or any(each.interrupted for each in state.opened):
                break
            state.dead.add(one[4])
        else:
            state.dead.discard(one[4])
            return connection
    if len(state.dead) == len({one[4] for one in found}):
        state.dead.clear()
    raise failure


def _connect(
    family: int,
    kind: int,
    protocol: int,
    _: str,
    address: Any,
    deadline: float,
    opened: list[BoundedSocket],
) -> BoundedSocket:
    """Connects to one address. A system may lack the address family, for example IPv6."""
    sock = socket.socket(family, kind, protocol)
    bounded = BoundedSocket(sock, deadline)
    opened.append(bounded)
    try:
        sock.settimeout(bounded.limit_seconds(CONNECT_SECONDS))
        sock.connect(address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        bounded.close()
        raise
    return bounded


def _open_tunnel(bounded: BoundedSocket, target: Address, proxy: Address) -> None:
    """Asks the proxy for a tunnel to the target."""
    place = f"{target.ascii_host}:{target.port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}", *build_proxy_headers(proxy)]
    bounded.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    status = read_response(bounded, with_body=False).status
    if status != 200:
        raise OSError(f"the proxy answered HTTP {status}")


def build_proxy_headers(proxy: Address | None) -> list[str]:
    """The header that authenticates the agent to the proxy, if the proxy has credentials."""
    if proxy is None or not proxy.credentials:
        return []
    return [f"Proxy-Authorization: Basic {base64.b64encode(proxy.credentials.encode()).decode()}"]
