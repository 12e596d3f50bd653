"""Report view: the report endpoint for callers that use Django without the WSGI application around
it."""

from __future__ import annotations

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt

from dashboard.common.http import json_response
from dashboard.ingest.endpoint import handle_reports


@csrf_exempt
def reports_receive(request: WSGIRequest) -> HttpResponse:
    """Answers as the endpoint does."""
    answer = handle_reports(request.environ)
    response = json_response(answer.body, answer.status)
    for name, value in answer.headers:
        response[name] = value
    response._has_been_logged = True  # type: ignore[attr-defined]  # counted, not logged
    return response
