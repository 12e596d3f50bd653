"""Refusals of requests that no thread answers: counted as those of the report endpoint, and in the same shape."""

from __future__ import annotations

from django.conf import settings

from dashboard.common.http import API_HEADERS
from dashboard.common.log_formatters import REQUEST_ID, request_begins
from dashboard.ingest.body_decoder import Refused
from dashboard.ingest.endpoint import Answer, request_refuse
from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.refusal_counters import refusal_note
from dashboard.ingest.request_checks import Environ, key_known


def refusal_of(refused: Refused, environ: Environ) -> Answer:
    """The whole answer; the connection ends with it, for what the client still sends is not read."""
    key = key_known(environ)
    request_id = request_begins(environ.get("HTTP_X_REQUEST_ID", ""))
    status, headers, body = request_refuse(refused, key.project_id if key else 0)
    REQUEST_ID.set("")
    always = [*API_HEADERS.items(), ("Referrer-Policy", str(settings.SECURE_REFERRER_POLICY))]
    return Answer(status, [*always, ("X-Request-ID", request_id), ("Content-Length", str(len(body))), *headers], body)


def slow_reader_note() -> None:
    """A connection was ended because its client did not take the answer."""
    refusal_note(project_id=0, code="slow_reader")
    COMMITTER.start()
