"""The connection of one request: opened by the agent's own thread, to the address that was set, bounded in time and size whatever the
other side does."""

from __future__ import annotations

import binascii
import io
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from compilewatch.export.http.response import MAX_ANSWER, AnswerError, head_read

if TYPE_CHECKING:
    import ssl

    from compilewatch.export.http.tls import Tls

CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 3.0, 5.0, 8.0
_STEP = 64 << 10


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect to; `secure` says that TLS is spoken there."""

    host: str
    port: int
    secure: bool
    credentials: str = ""

    @classmethod
    def of(cls, url: str) -> Address:
        """The address in an URL that was checked before."""
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        user = (
            f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
        )
        return cls(parts.hostname or "", parts.port or (443 if secure else 80), secure, user)

    @property
    def name(self) -> str:
        """Host and port as a header writes them."""
        host = f"[{self.host}]" if ":" in self.host else self.host.encode("idna").decode()
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


class HandshakeError(OSError):
    """The other side did not bring the TLS handshake to its end."""


class Bounded:
    """A socket that takes and gives only before a moment of the monotonic clock, and no more than an answer may hold."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline
        self._room = MAX_ANSWER
        self.interrupted = False

    def remaining(self, most: float) -> float:
        """Seconds for the next step; raises TimeoutError when none are left."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"the request took longer than {TOTAL_SECONDS:.0f} s")
        return min(most, left)

    def write(self, data: bytes) -> None:
        """All of it, each part as soon as the other side takes it."""
        view = memoryview(data)
        while view:
            self._sock.settimeout(self.remaining(READ_SECONDS))
            view = view[self._sock.send(view[:_STEP]) :]

    def receive(self, buffer: Any) -> int:
        """One read of what has come."""
        self._sock.settimeout(self.remaining(READ_SECONDS))
        count = self._sock.recv_into(buffer)
        self._room -= count
        if self._room < 0:
            raise AnswerError(f"an answer of more than {MAX_ANSWER >> 10} KiB")
        return count

    def secured(self, tls: Tls, host: str) -> Bounded:
        """The same for TLS, before the handshake."""
        return Bounded(tls.wrapped(self._sock, host), self._deadline)

    def handshake(self) -> None:
        """The other side proves who it is."""
        self._sock.settimeout(self.remaining(READ_SECONDS))  # of the whole handshake
        try:
            cast("ssl.SSLSocket", self._sock).do_handshake()
        except (TimeoutError, ConnectionError) as error:
            raise HandshakeError(f"the TLS handshake did not come to its end: {error}") from None

    def interrupt(self) -> None:
        """Called by another thread: whatever waits on this connection fails at once."""
        self.interrupted, self._deadline = True, 0.0
        with suppress(OSError):
            # Not the method of an SSLSocket, which would go on in plain text.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def reader(self) -> io.BufferedReader:
        """What an answer is read from."""
        return io.BufferedReader(_Reading(self))

    def close(self) -> None:
        """Ends the connection."""
        self._sock.close()


class _Reading(io.RawIOBase):
    """The socket as a file."""

    def __init__(self, bounded: Bounded) -> None:
        self._bounded = bounded

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """One read."""
        return self._bounded.receive(buffer)


class Attempts(NamedTuple):
    """What one sender knows of its connections: those that are open now, and the addresses that did not answer the last time."""

    opened: list[Bounded]
    dead: set[Any]


@contextmanager
def connected(
    target: Address, proxy: Address | None, tls: Tls | None, attempts: Attempts
) -> Iterator[Bounded]:
    """A connection to the target, through the proxy if there is one, closed at the end of the block. Raises OSError."""
    opened = attempts.opened
    try:
        connection = _dial(proxy or target, attempts)
        if tls is not None:
            if proxy is not None:
                _tunnel(connection, target, proxy)
            connection = connection.secured(tls, target.host)
            opened.append(connection)
            connection.handshake()
        yield connection
    finally:
        while opened:
            opened.pop().close()


def _dial(address: Address, attempts: Attempts) -> Bounded:
    """Tries each address of the name, those last that did not answer the last time, all of them within one time, which begins after the
    look-up of the name: Python cannot end a look-up."""
    failure: OSError = OSError(f"{address.host} has no address")
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    deadline = time.monotonic() + TOTAL_SECONDS
    attempts.dead.intersection_update(one[4] for one in found)
    for one in sorted(found, key=lambda one: one[4] in attempts.dead):
        try:
            connection = _connected(*one, deadline, attempts.opened)
        except OSError as error:
            failure = error
            if time.monotonic() >= deadline or any(each.interrupted for each in attempts.opened):
                break
            attempts.dead.add(one[4])
        else:
            attempts.dead.discard(one[4])
            return connection
    if len(attempts.dead) == len({one[4] for one in found}):
        attempts.dead.clear()
    raise failure


def _connected(
    family: int,
    kind: int,
    protocol: int,
    _: str,
    place: Any,
    deadline: float,
    opened: list[Bounded],
) -> Bounded:
    """To one address, within 3 s; a system may have no sockets of that family, as one without IPv6."""
    sock = socket.socket(family, kind, protocol)
    bounded = Bounded(sock, deadline)
    opened.append(bounded)
    try:
        sock.settimeout(bounded.remaining(CONNECT_SECONDS))
        sock.connect(place)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        bounded.close()
        raise
    return bounded


def _tunnel(bounded: Bounded, target: Address, proxy: Address) -> None:
    place = f"[{target.host}]" if ":" in target.host else target.host.encode("idna").decode()
    lines = [
        f"CONNECT {place}:{target.port} HTTP/1.1",
        f"Host: {place}:{target.port}",
        *authorization(proxy),
    ]
    bounded.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    status = head_read(bounded.reader()).status
    if status != 200:
        raise OSError(f"the proxy answered HTTP {status}")


def authorization(proxy: Address | None) -> list[str]:
    """The header that names the user to the proxy, if it has one."""
    if proxy is None or not proxy.credentials:
        return []
    return [
        f"Proxy-Authorization: Basic {binascii.b2a_base64(proxy.credentials.encode(), newline=False).decode()}"
    ]
