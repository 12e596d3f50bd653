"""Probe hosts: a supervisor addresses a process by IP, so the two health endpoints accept any host
name."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

PROBE_PATHS = ("/healthz", "/readyz")


class ProbeHostMiddleware:
    """Middleware that gives a probe the first allowed host name, so that the host check passes. The
    response contains no host name."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Changes only probes; other requests pass unchanged."""
        if request.path_info in PROBE_PATHS:
            request.META["HTTP_HOST"] = settings.ALLOWED_HOSTS[0]
        return self._get_response(request)
