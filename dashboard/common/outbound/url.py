"""Webhook URL parser: strict, so that unusual forms are refused before any lookup."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import urlsplit

ALLOWED_PORTS = (443, 8443)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class TargetError(ValueError):
    """The address is not an allowed target; the text gives the reason."""


@dataclass(frozen=True)
class Target:
    """Parsed target. `allowed` marks an exception that the operator of the server configured."""

    https: bool
    host: str
    port: int
    path: str
    allowed: bool

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        name = _bracket_ipv6(self.host)
        return name if self.port == (443 if self.https else 80) else f"{name}:{self.port}"


def parse_target(url: str, allow: Collection[str]) -> Target:
    """Checks and splits an address. Raises TargetError.

    `allow` holds exact host:port entries. These may use http, private addresses and any port.
    """
    if not url or len(url) > 2048 or not all("!" <= letter <= "~" for letter in url) or "\\" in url:
        raise TargetError(
            "The address must be at most 2,048 plain ASCII characters without spaces; "
            "write other names in their xn-- form."
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise TargetError("The address is not a valid URL.") from error
    if "@" in parts.netloc:
        raise TargetError("The address must not contain a user name or a password.")
    if parts.scheme not in ("http", "https"):
        raise TargetError("The address must start with https://.")
    host = _host(parts.hostname or "", bracketed="[" in parts.netloc)
    https = parts.scheme == "https"
    port = port if port is not None else (443 if https else 80)
    allowed = f"{_bracket_ipv6(host)}:{port}" in {entry.lower() for entry in allow}
    if not allowed and not https:
        raise TargetError("The address must start with https://.")
    if not allowed and port not in ALLOWED_PORTS:
        raise TargetError("The address must use port 443 or 8443.")
    return Target(
        https, host, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), allowed
    )


def _host(host: str, *, bracketed: bool) -> str:
    """The lower-case name or the address. Refuses numeric forms that only some programs accept as
    an address."""
    try:
        if bracketed:
            return str(IPv6Address(host))
        labels = host.removesuffix(".").lower().split(".")
        if _NUMBER.fullmatch(labels[-1]):
            return str(IPv4Address(host))
    except AddressValueError as error:
        raise TargetError("The address has a host that is not a plain IP address.") from error
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise TargetError("The address has no valid host name.")
    return ".".join(labels)


def _bracket_ipv6(host: str) -> str:
    return f"[{host}]" if ":" in host else host
