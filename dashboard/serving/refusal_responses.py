"""Refusal responses for requests without a thread: counted and formatted as those of the report
endpoint."""

from __future__ import annotations

from django.conf import settings

from dashboard.common.http import API_HEADERS
from dashboard.common.log_formatters import REQUEST_ID, set_request_id
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.endpoint import WsgiResponse, request_refuse
from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.refusal_counters import record_refusal
from dashboard.ingest.request_checks import Environ, find_cached_key


def build_refusal(refused: RefusalError, environ: Environ) -> WsgiResponse:
    """Builds the whole answer. The connection then closes, because the rest of the request is not
    read."""
    key = find_cached_key(environ)
    request_id = set_request_id(environ.get("HTTP_X_REQUEST_ID", ""))
    status, headers, body = request_refuse(refused, key.project_id if key else 0)
    REQUEST_ID.set("")
    always = [*API_HEADERS.items(), ("Referrer-Policy", str(settings.SECURE_REFERRER_POLICY))]
    return WsgiResponse(
        status,
        [*always, ("X-Request-ID", request_id), ("Content-Length", str(len(body))), *headers],
        body,
    )


def record_slow_reader() -> None:
    """Counts a connection that ended because its client was too slow to read the answer."""
    record_refusal(project_id=0, code="slow_reader")
    COMMITTER.start()
