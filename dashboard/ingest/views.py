"""The report endpoint as a Django view, for whatever calls Django without the WSGI application
around it."""

from __future__ import annotations

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt

from dashboard.common.http import json_response
from dashboard.ingest.endpoint import handle_reports


@csrf_exempt
def reports_receive(request: WSGIRequest) -> HttpResponse:
    """The same answer as the endpoint gives on its own."""
    answer = handle_reports(request.environ)
    response = json_response(answer.body, answer.status)
    for name, value in answer.headers:
        response[name] = value
    response._has_been_logged = True  # type: ignore[attr-defined]  # refusals are counted; a log line each would be a flood
    return response
