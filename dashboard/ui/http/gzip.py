"""Pages and their files are sent compressed; what agents and machines ask for stays as it is."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

TEXT_TYPES = (
    "text/html",
    "text/css",
    "text/csv",
    "text/javascript",
    "application/javascript",
    "image/svg+xml",
)
MACHINE_PREFIXES = ("/api/", "/metrics")


class CompressedPages(GZipMiddleware):
    """Django's own, with its padding against BREACH, for text that a browser reads and for the JSON
    twins of pages."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Leaves alone what is not for a browser."""
        kind = response.get("Content-Type", "").split(";")[0]
        read = kind in TEXT_TYPES or (
            kind == "application/json" and request.path_info.startswith("/p/")
        )
        if request.method != "GET" or not read or request.path_info.startswith(MACHINE_PREFIXES):
            return response
        return super().process_response(request, response)
