"""WSGI router: sends reports directly to their endpoint and everything else to Django."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from django.conf import settings

from dashboard.common.http import API_HEADERS
from dashboard.common.log_formatters import REQUEST_ID, set_request_id
from dashboard.ingest.endpoint import handle_reports
from dashboard.ingest.request_checks import Environ

REPORTS_PATH = "/api/v1/reports"
StartResponse = Callable[[str, list[tuple[str, str]]], Any]
Application = Callable[[Environ, Any], Iterable[bytes]]


class ReportsRouter:
    """Answers the one path that machines request thousands of times a second, without sessions,
    cookies and other features for people."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._always = [
            *API_HEADERS.items(),
            ("Referrer-Policy", str(settings.SECURE_REFERRER_POLICY)),
        ]
        if settings.SECURE_HSTS_SECONDS:
            self._always.append(
                ("Strict-Transport-Security", f"max-age={settings.SECURE_HSTS_SECONDS}")
            )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") != REPORTS_PATH:
            return self._application(environ, start_response)
        request_id = set_request_id(environ.get("HTTP_X_REQUEST_ID", ""))
        answer = handle_reports(environ)
        REQUEST_ID.set("")
        start_response(
            f"{answer.status} {HTTPStatus(answer.status).phrase}",
            [
                *self._always,
                ("X-Request-ID", request_id),
                ("Content-Length", str(len(answer.body))),
                *answer.headers,
            ],
        )
        return [answer.body]
