"""Outbound HTTP client: sends requests to addresses that people enter, never to the internal
network.

Algorithm: `parse_target` checks the form of the URL. The resolver looks the name up once, and every
address must be public (`ip_policy`) unless the operator allows the target. The client connects to a
checked address, compares the peer address, then starts TLS with the name.

Invariants:
- The checked connection is the only connection: no second lookup, so DNS rebinding has no effect.
- Redirects are not followed.
- One deadline covers lookup, connection, TLS and the whole answer; the answer is bounded in bytes.
- A private address and an unreachable address yield the same text, so errors do not reveal the
  internal network.

Errors, all subclasses of OutboundError:
- OutboundRefusal: nothing was sent, because the target is not allowed or not reachable.
- OutboundFailure: the connection was established, and the exchange failed.
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

from dashboard.common.deadline_socket import BoundedSocket, ResponseTooLargeError
from dashboard.common.outbound.ip_policy import is_public
from dashboard.common.outbound.resolver import Resolver, resolve_name
from dashboard.common.outbound.url import Target, TargetError, parse_target
from dashboard.vocabulary.numbers import significant

UNREACHABLE = "The address could not be reached, or sending to it is not allowed."


class OutboundError(Exception):
    """A message could not be sent. The text may be shown to the person who set the address."""


class OutboundRefusal(OutboundError):
    """Nothing was sent. A private address and an unreachable address have the same text."""


class OutboundFailure(OutboundError):
    """The connection was established, but the outcome of the message is unknown."""


@dataclass(frozen=True)
class OutboundResponse:
    """Answer of the other side, cut to the limit. `retry_after` is the raw Retry-After header."""

    status: int
    text: str
    retry_after: str = ""
    cut: bool = False


@dataclass(frozen=True)
class OutboundLimits:
    """Limits of an exchange: seconds to connect, seconds in total, bytes of the answer."""

    connect: float = 5.0
    total: float = 10.0
    answer: int = 16 << 10


@dataclass(frozen=True)
class _Deadline:
    clock: Callable[[], float]
    connect: float
    total: float

    def left(self, *, connecting: bool = False) -> float:
        """Seconds left, never zero: a socket treats zero as non-blocking mode and would report
        another error."""
        return max(
            0.001, (min(self.connect, self.total) if connecting else self.total) - self.clock()
        )


def outbound_post(
    *,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    resolver: Resolver = resolve_name,
    limits: OutboundLimits = OutboundLimits(),
    clock: Callable[[], float] = time.monotonic,
) -> OutboundResponse:
    """Posts the body and returns the answer with any status. Redirects are not followed.

    Raises OutboundError.
    """
    return _send_request("POST", url, body, headers, resolver, limits, clock)


def outbound_get(
    *,
    url: str,
    headers: Mapping[str, str],
    resolver: Resolver = resolve_name,
    limits: OutboundLimits = OutboundLimits(),
    clock: Callable[[], float] = time.monotonic,
) -> OutboundResponse:
    """Gets the URL within the same limits. Raises OutboundError."""
    return _send_request("GET", url, None, headers, resolver, limits, clock)


def _send_request(
    method: str,
    url: str,
    body: bytes | None,
    headers: Mapping[str, str],
    resolver: Resolver,
    limits: OutboundLimits,
    clock: Callable[[], float],
) -> OutboundResponse:
    plain, target, deadline = _open_connection(url, resolver, limits, clock)
    try:
        return _exchange(
            _wrap_tls(plain, target, deadline), target, method, body, headers, limits, deadline
        )
    finally:
        plain.close()


def _open_connection(
    url: str, resolver: Resolver, limits: OutboundLimits, clock: Callable[[], float]
) -> tuple[socket.socket, Target, _Deadline]:
    """Connects to the checked target. Returns the connection, the target and the deadline.

    Raises OutboundRefusal.
    """
    started = clock()
    deadline = _Deadline(clock, started + limits.connect, started + limits.total)
    try:
        target = parse_target(url, settings.OUTBOUND_ALLOW)
    except TargetError as error:
        raise OutboundRefusal(str(error)) from error
    return _connect(target, resolver, deadline), target, deadline


def outbound_probe(
    *, url: str, resolver: Resolver = resolve_name, limits: OutboundLimits = OutboundLimits()
) -> None:
    """Connects as a message would, including TLS, without sending a request. Raises
    OutboundError."""
    plain, target, deadline = _open_connection(url, resolver, limits, time.monotonic)
    try:
        _wrap_tls(plain, target, deadline).close()
    finally:
        plain.close()


def _connect(target: Target, resolver: Resolver, deadline: _Deadline) -> socket.socket:
    """Connects to one of the checked addresses, after exactly one lookup of the name."""
    addresses = resolver(target.host, target.port, deadline.left(connecting=True))
    if not addresses or not (target.allowed or all(is_public(address) for address in addresses)):
        raise OutboundRefusal(UNREACHABLE)
    for address in addresses:
        try:
            connection = socket.create_connection(
                (address, target.port), timeout=deadline.left(connecting=True)
            )
        except OSError:
            continue
        if ip_address(connection.getpeername()[0]) == ip_address(address):
            return connection
        connection.close()
    raise OutboundRefusal(UNREACHABLE)


def _wrap_tls(plain: socket.socket, target: Target, deadline: _Deadline) -> socket.socket:
    if not target.https:
        return plain
    plain.settimeout(deadline.left())
    try:
        return ssl.create_default_context().wrap_socket(plain, server_hostname=target.host)
    except ssl.SSLCertVerificationError as error:
        raise OutboundFailure(
            f"The server's certificate is not valid: {error.verify_message}."
        ) from error
    except TimeoutError as error:
        raise OutboundFailure("No TLS connection was established in time.") from error
    except (ssl.SSLError, OSError, ValueError) as error:
        raise OutboundFailure("No TLS connection was established.") from error


def _exchange(
    connection: socket.socket,
    target: Target,
    method: str,
    body: bytes | None,
    headers: Mapping[str, str],
    limits: OutboundLimits,
    deadline: _Deadline,
) -> OutboundResponse:
    bounded = BoundedSocket(connection, deadline.left, allowance=limits.answer + (16 << 10))
    client = http.client.HTTPConnection(target.host, target.port)
    client.auto_open = 0  # only the checked connection may be used
    client.sock = bounded
    wanted = {
        "Host": target.authority,
        "User-Agent": "compilewatch",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
    try:
        client.request(method, target.path, body=body, headers={**headers, **wanted})
        response = client.getresponse()
        status, retry_after = response.status, response.getheader("Retry-After", "")
        text, whole = _text(response, limits.answer)
        return OutboundResponse(status, text, retry_after, not whole)
    except TimeoutError as error:
        raise OutboundFailure(f"No response within {significant(limits.total)} s.") from error
    except ResponseTooLargeError as error:
        raise OutboundFailure("The headers of the response do not end.") from error
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise OutboundFailure(
            f"The connection was closed early ({type(error).__name__})."
        ) from error
    finally:
        connection.close()


def _text(response: http.client.HTTPResponse, limit: int) -> tuple[str, bool]:
    """Reads the body up to the limit. Returns the text, and True if the body is complete.

    After a status has arrived, a body that breaks off does not change the outcome.
    """
    parts: list[bytes] = []
    whole = True
    try:
        while (room := limit - sum(map(len, parts))) > 0 and (part := response.read1(room)):
            parts.append(part)
    except (http.client.HTTPException, OSError, ResponseTooLargeError, ValueError):
        parts.append(b" [broke off]")
        whole = False
    text = b"".join(parts).decode("utf-8", errors="replace")
    shown = "".join(
        letter if letter.isprintable() or letter == "\n" else "\ufffd" for letter in text
    )
    return shown, whole and sum(map(len, parts)) < limit
