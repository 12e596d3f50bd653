"""JSON errors: the one error shape, and the middleware that gives it to every answer under
/api/."""

import logging
from collections.abc import Callable

from compilewatch.wire.codec import dumps
from compilewatch.wire.errors import Error
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils.encoding import escape_uri_path

logger = logging.getLogger(__name__)

_STATUS_ERRORS = {
    400: ("bad_request", "The request is malformed."),
    401: ("bad_key", "The key is missing, unknown, revoked or expired."),
    403: ("forbidden", "This is not allowed."),
    404: ("not_found", "There is no resource at this address."),
    405: ("wrong_method", "This address does not support the method."),
    413: ("too_large", "The body is too large."),
    429: ("too_many", "Too many requests."),
    503: ("busy", "The server is unavailable; try again later."),
}
API_HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every JSON response."""

_INTERNAL = ("internal", "Internal server error; the cause is in the server's log.")


def json_response(body: bytes, status: int = 200) -> HttpResponse:
    """Builds a JSON answer that browsers cannot interpret as anything else."""
    return HttpResponse(
        body, status=status, headers={**API_HEADERS, "Content-Length": str(len(body))}
    )


def error_response(
    status: int, code: str, detail: str, retry_after: int | None = None
) -> HttpResponse:
    """Builds an error in the one shape: `{"cw": 1, "code": ..., "detail": ...}`."""
    response = json_response(dumps(Error(code=code, detail=detail)), status)
    if retry_after is not None:
        response["Retry-After"] = str(retry_after)
    return response


def busy_response(retry_after: int = 5) -> HttpResponse:
    """Builds the 503 answer for a database that does not answer."""
    return error_response(
        503, "busy", "The database does not respond; nothing was stored. Try again.", retry_after
    )


class ApiErrorMiddleware:
    """Middleware that gives errors under /api/ the one shape. A failing database yields 503 with
    Retry-After."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if (
            response.status_code < 400
            or not _is_api(request)
            or response.get("Content-Type", "").startswith("application/json")
        ):
            return response
        code, detail = _STATUS_ERRORS.get(
            response.status_code, _INTERNAL if response.status_code >= 500 else _STATUS_ERRORS[400]
        )
        answer = error_response(response.status_code, code, detail)
        for name in ("Allow", "Retry-After", "WWW-Authenticate"):
            if name in response:
                answer[name] = response[name]
        return answer

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answers an exception of the database; Django calls this when a view raised."""
        if not _is_api(request) or not isinstance(exception, DatabaseError):
            return None
        logger.warning("%s: the database failed: %s", escape_uri_path(request.path), exception)
        return busy_response()


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")
