"""The one HTTP client for the outside world: a POST to an address that somebody typed in, kept away from our own network.

OutboundError
├── OutboundRefused   we do not send there, or nothing could be reached there: the two are told alike on purpose
└── OutboundFailed    it was reached, and the exchange broke off
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from django.conf import settings

from dashboard.common.bounded_socket import BoundedSocket, OutOfBounds
from dashboard.common.outbound_target import Target, TargetError, target_of
from dashboard.common.public_address import is_public
from dashboard.common.resolver import Resolver, resolve_name

UNREACHABLE = "The address could not be reached, or sending to it is not allowed."


class OutboundError(Exception):
    """A message could not be sent; the text may be shown to whoever set the address."""


class OutboundRefused(OutboundError):
    """Nothing was sent. The same text stands for a private address and for one where nobody answers."""


class OutboundFailed(OutboundError):
    """The connection was made; what came of the message is not known."""


@dataclass(frozen=True)
class Answer:
    """What the other side said, cut to the limit; `retry_after` is its Retry-After header as it came."""

    status: int
    text: str
    retry_after: str = ""


@dataclass(frozen=True)
class Limits:
    """Seconds to connect, seconds for everything together, and bytes of the answer that are read."""

    connect: float = 5.0
    total: float = 10.0
    answer: int = 16 << 10


@dataclass(frozen=True)
class _Deadline:
    clock: Callable[[], float]
    connect: float
    total: float

    def left(self, *, connecting: bool = False) -> float:
        """Seconds left, never zero: a socket takes zero for "do not wait" and would report something else."""
        return max(0.001, (min(self.connect, self.total) if connecting else self.total) - self.clock())


def outbound_post(
    *,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    resolver: Resolver = resolve_name,
    limits: Limits = Limits(),
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """Posts the body and returns the answer, whatever its status; redirects are not followed."""
    started = clock()
    deadline = _Deadline(clock, started + limits.connect, started + limits.total)
    try:
        target = target_of(url, settings.OUTBOUND_ALLOW)
    except TargetError as error:
        raise OutboundRefused(str(error)) from error
    plain = _connect(target, resolver, deadline)
    try:
        return _exchange(_secured(plain, target, deadline), target, body, headers, limits, deadline)
    finally:
        plain.close()


def _connect(target: Target, resolver: Resolver, deadline: _Deadline) -> socket.socket:
    """A connection to one of the addresses that were checked; the name is looked up exactly once."""
    addresses = resolver(target.host, target.port, deadline.left(connecting=True))
    if not addresses or not (target.allowed or all(is_public(address) for address in addresses)):
        raise OutboundRefused(UNREACHABLE)
    for address in addresses:
        try:
            connection = socket.create_connection((address, target.port), timeout=deadline.left(connecting=True))
        except OSError:
            continue
        if ip_address(connection.getpeername()[0]) == ip_address(address):
            return connection
        connection.close()
    raise OutboundRefused(UNREACHABLE)


def _secured(plain: socket.socket, target: Target, deadline: _Deadline) -> socket.socket:
    if not target.https:
        return plain
    plain.settimeout(deadline.left())
    try:
        return ssl.create_default_context().wrap_socket(plain, server_hostname=target.host)
    except ssl.SSLCertVerificationError as error:
        raise OutboundFailed(f"The certificate was not accepted: {error.verify_message}.") from error
    except TimeoutError as error:
        raise OutboundFailed("No secure connection came about in time.") from error
    except (ssl.SSLError, OSError, ValueError) as error:
        raise OutboundFailed("No secure connection came about.") from error


def _exchange(
    connection: socket.socket, target: Target, body: bytes, headers: Mapping[str, str], limits: Limits, deadline: _Deadline
) -> Answer:
    bounded = BoundedSocket(connection, deadline.left, allowance=limits.answer + (16 << 10))
    client = http.client.HTTPConnection(target.host, target.port)
    client.auto_open = 0  # the checked connection is the only one there will be
    client.sock = bounded
    wanted = {"Host": target.authority, "User-Agent": "compilewatch", "Accept-Encoding": "identity", "Connection": "close"}
    try:
        client.request("POST", target.path, body=body, headers={**headers, **wanted})
        response = client.getresponse()
        status, retry_after = response.status, response.getheader("Retry-After", "")
        return Answer(status, _text(response, limits.answer), retry_after)
    except TimeoutError as error:
        raise OutboundFailed(f"No answer within {limits.total:g} s.") from error
    except OutOfBounds as error:
        raise OutboundFailed("The answer has no end to its headers.") from error
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise OutboundFailed(f"The connection broke off ({type(error).__name__}).") from error
    finally:
        connection.close()


def _text(response: http.client.HTTPResponse, limit: int) -> str:
    """What can be read of the body: once there is a status, a body that breaks off takes nothing back."""
    parts: list[bytes] = []
    try:
        while (room := limit - sum(map(len, parts))) > 0 and (part := response.read1(room)):
            parts.append(part)
    except (http.client.HTTPException, OSError, OutOfBounds, ValueError):
        parts.append(b" [broke off]")
    text = b"".join(parts).decode("utf-8", errors="replace")
    return "".join(letter if letter.isprintable() or letter == "\n" else "\ufffd" for letter in text)
