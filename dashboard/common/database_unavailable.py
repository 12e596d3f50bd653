"""What people hear while the database is away, locked or full: a page that asks no database, and 503 instead of 500."""

import logging
import sys
from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import get_template
from django.utils.encoding import escape_uri_path
from django.views.defaults import server_error

from dashboard.common.http import busy_answer

logger = logging.getLogger(__name__)

AWAY = (OperationalError, InterfaceError)
COME_BACK = 5


class DatabaseAway:
    """Middleware: a page whose database failed is a 503 that says so and when to come back; under /api/ the errors have their own shape."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Called by Django when a view raised."""
        if not isinstance(exception, AWAY):
            return None
        logger.warning("%s: the database failed: %s", escape_uri_path(request.path), str(exception).strip())
        return away_answer(request)


def away_answer(request: HttpRequest) -> HttpResponse:
    """The static page for people, JSON for programs."""
    if request.path_info.startswith("/api/") or request.path_info.endswith(".json"):
        return busy_answer(COME_BACK)
    response = HttpResponse(get_template("503.html").render(), status=503, headers={"Retry-After": str(COME_BACK)})
    response["Cache-Control"] = "no-store"
    return response


def failed(request: HttpRequest) -> HttpResponse:
    """Django's handler of what no view caught: the database may fail in a middleware too, where sessions are read and saved."""
    return away_answer(request) if isinstance(sys.exc_info()[1], AWAY) else server_error(request)
