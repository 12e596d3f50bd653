"""Middleware, placed first: reports go straight to their view, past sessions, cookies and all that people need."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from dashboard.ingest.views import reports_receive

PATH = "/api/v1/reports"


class ReportsDoor:
    """Answers the one path that machines use thousands of times a second; everything else goes on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return reports_receive(request) if request.path_info == PATH else self._get_response(request)
