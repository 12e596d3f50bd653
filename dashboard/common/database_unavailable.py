"""Database outages: a static page or JSON with status 503 while the database is away, locked or
full."""

import logging
import sys
from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import get_template
from django.utils.encoding import escape_uri_path
from django.views.defaults import server_error

from dashboard.common.http import busy_response

logger = logging.getLogger(__name__)

UNAVAILABLE_ERRORS = (OperationalError, InterfaceError)
RETRY_AFTER_S = 5


class DatabaseUnavailableMiddleware:
    """Middleware that answers 503 with Retry-After if the database failed. Errors under /api/ have
    their own shape."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answers an exception of the database; Django calls this when a view raised."""
        if not isinstance(exception, UNAVAILABLE_ERRORS):
            return None
        logger.warning(
            "%s: the database failed: %s", escape_uri_path(request.path), str(exception).strip()
        )
        return unavailable_response(request)


def unavailable_response(request: HttpRequest) -> HttpResponse:
    """The static page for people, JSON for programs."""
    if request.path_info.startswith("/api/") or request.path_info.endswith(".json"):
        return busy_response(RETRY_AFTER_S)
    response = HttpResponse(
        get_template("503.html").render(), status=503, headers={"Retry-After": str(RETRY_AFTER_S)}
    )
    response["Cache-Control"] = "no-store"
    return response


def handle_server_error(request: HttpRequest) -> HttpResponse:
    """Error handler for exceptions outside views: the database may also fail in a middleware that
    reads or saves sessions."""
    return (
        unavailable_response(request)
        if isinstance(sys.exc_info()[1], UNAVAILABLE_ERRORS)
        else server_error(request)
    )
