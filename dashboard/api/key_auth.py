"""Key authentication of API views: the right kind of key in the header, or an error answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from compilewatch.wire.errors import ERROR_CODES
from django.http import HttpRequest, HttpResponse

from dashboard.common.http import error_response
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.request_checks import key_require
from dashboard.projects.key_auth import VerifiedKey

View = Callable[[HttpRequest, VerifiedKey], HttpResponse]


def with_key(kind: str) -> Callable[[View], Callable[[HttpRequest], HttpResponse]]:
    """Turns a view of (request, key) into a view of (request). The key determines the project."""

    def wrap(view: View) -> Callable[[HttpRequest], HttpResponse]:
        @wraps(view)
        def through(request: HttpRequest) -> HttpResponse:
            try:
                return view(request, key_require(request.META, kind))
            except RefusalError as refused:
                answer = error_response(ERROR_CODES[refused.code][0], refused.code, refused.detail)
                if answer.status_code == 401:
                    answer["WWW-Authenticate"] = "Bearer"
                return answer

        return through

    return wrap
