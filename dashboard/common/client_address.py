"""Client address of a request: the address that the outermost trusted proxy saw, else the address
of the connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse


class ClientAddressMiddleware:
    """Middleware that stores the client's address in REMOTE_ADDR, for the audit log, the sign-in
    limits and the session list."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Sets REMOTE_ADDR if the request has a valid client address."""
        if found := find_client_address(request.META):
            request.META["REMOTE_ADDR"] = found
        return self._get_response(request)


def find_client_address(environ: Mapping[str, Any]) -> str | None:
    """The client's address.

    The header is ignored if it has fewer entries than there are trusted proxies: such a request
    bypassed a proxy.
    """
    if settings.TRUSTED_PROXIES:
        passed = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
        if len(passed) >= settings.TRUSTED_PROXIES and (
            found := _parse_forwarded(passed[-settings.TRUSTED_PROXIES])
        ):
            return found
    return normalize_address(environ.get("REMOTE_ADDR", ""))


def normalize_address(text: str) -> str | None:
    """The canonical form of an address. A dual-stack socket reports IPv4 addresses as
    ::ffff:192.0.2.1."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return str(getattr(found, "ipv4_mapped", None) or found)


def _parse_forwarded(text: str) -> str | None:
    """Parses an address without the port that some proxies append."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return normalize_address(text)
