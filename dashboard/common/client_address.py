"""Whose address a request came from: behind proxies of ours the one that the outermost of them saw,
else the connection's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse


class ClientAddressMiddleware:
    """Puts the client's address where everything looks for it: the audit record, the limits on
    sign-in, the list of sessions."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """What is no address stays as it came."""
        if found := find_client_address(request.META):
            request.META["REMOTE_ADDR"] = found
        return self._get_response(request)


def find_client_address(environ: Mapping[str, Any]) -> str | None:
    """The client's address. A header with fewer entries than there are proxies did not pass all of
    them: it is not believed."""
    if settings.TRUSTED_PROXIES:
        passed = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
        if len(passed) >= settings.TRUSTED_PROXIES and (
            found := _parse_forwarded(passed[-settings.TRUSTED_PROXIES])
        ):
            return found
    return normalize_address(environ.get("REMOTE_ADDR", ""))


def normalize_address(text: str) -> str | None:
    """One way to write an address: a socket for IPv6 and IPv4 names an IPv4 address as
    ::ffff:192.0.2.1."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return str(getattr(found, "ipv4_mapped", None) or found)


def _parse_forwarded(text: str) -> str | None:
    """An address without the port that some proxies write behind it."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return normalize_address(text)
