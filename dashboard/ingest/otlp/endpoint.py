"""`POST /api/v1/otlp/v1/metrics`: what comes in is durable before it is acknowledged, by the same way as reports."""

from __future__ import annotations

import json
import logging
from typing import Any

from compilewatch.wire.codec import dumps
from compilewatch.wire.errors import ERROR_CODES
from django.core.handlers.wsgi import WSGIRequest
from django.db import DatabaseError
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt

from dashboard.common import clock
from dashboard.common.http import API_HEADERS, error_answer, json_answer
from dashboard.ingest.admission import ADMISSION, quota_check
from dashboard.ingest.batch import batch_read
from dashboard.ingest.body_decoder import Refused, text_check
from dashboard.ingest.endpoint import DATABASE_AWAY
from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.intake_counters import intake_note
from dashboard.ingest.otlp.convert import Taken, requests_of
from dashboard.ingest.otlp.protobuf import metrics_read
from dashboard.ingest.refusal_counters import refusal_note
from dashboard.ingest.request_checks import Environ, body_read, head_check, key_require, method_check
from dashboard.projects.key_auth import KnownKey

logger = logging.getLogger(__name__)

JSON, PROTOBUF = "application/json", "application/x-protobuf"


@csrf_exempt
def metrics_receive(request: WSGIRequest) -> HttpResponse:
    """Answers as OTLP wants it, in the form in which was asked."""
    environ, key = request.environ, None
    binary = environ.get("CONTENT_TYPE", "").partition(";")[0].strip() == PROTOBUF
    try:
        with ADMISSION:
            method_check(environ)
            key = key_require(environ)
            taken = _accept(environ, key, binary)
    except Refused as refused:
        return _refuse(refused, key)
    except DatabaseError as error:
        logger.warning("metrics were not stored: %s", error)
        return _refuse(DATABASE_AWAY, key)
    return _answer(taken, binary)


def _accept(environ: Environ, key: KnownKey, binary: bool) -> Taken:
    length = head_check(environ, PROTOBUF if binary else JSON)
    bucket = quota_check(key.project_id, key.project_settings)
    body, now = body_read(environ, length), clock.unix()
    try:
        taken = requests_of(metrics_read(body) if binary else _json(body), key.project_id, now)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise Refused("bad_request", f"The body is no ExportMetricsServiceRequest: {type(error).__name__}.") from None
    for request in taken.requests:
        batch = batch_read(text=dumps(request), project_id=key.project_id, received=now)
        bucket.charge(len(batch.items) + len(batch.rejected))
        stored = COMMITTER.store(batch)
        intake_note(project_id=key.project_id, reports=len(stored.acked), size=length // len(taken.requests))
        for rejected in stored.rejected:
            refusal_note(project_id=key.project_id, code=rejected.code)
            taken.refuse(1, f"{rejected.code}: {rejected.detail}")
    COMMITTER.start()
    return taken


def _json(body: bytes) -> dict[str, Any]:
    text_check(body)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused("not_json", f"The body is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise Refused("bad_request", "The body is no ExportMetricsServiceRequest: it is no object.")
    return found


def _refuse(refused: Refused, key: KnownKey | None) -> HttpResponse:
    """In the one shape of every error under /api/, whatever was asked in: OTLP goes by the status."""
    refusal_note(project_id=key.project_id if key else 0, code=refused.code)
    COMMITTER.start()
    status = ERROR_CODES[refused.code][0]
    response = error_answer(status, refused.code, refused.detail, refused.retry_after)
    if status in (401, 405):
        response["WWW-Authenticate" if status == 401 else "Allow"] = "Bearer" if status == 401 else "POST"
    response._has_been_logged = True  # type: ignore[attr-defined]  # refusals are counted; a log line each would be a flood
    return response


def _answer(taken: Taken, binary: bool) -> HttpResponse:
    """An ExportMetricsServiceResponse; of what was left out the first reason."""
    if not binary:
        partial = {"rejectedDataPoints": str(taken.left_out), "errorMessage": taken.why}
        return json_answer(json.dumps({"partialSuccess": partial} if taken.left_out else {}).encode())
    told = _field(1, _varint(1 << 3) + _varint(taken.left_out) + _field(2, taken.why.encode())) if taken.left_out else b""
    return HttpResponse(told, headers={**API_HEADERS, "Content-Type": PROTOBUF})


def _field(number: int, data: bytes) -> bytes:
    """A text or message of protobuf."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes((value & 127 | 128,))
        value >>= 7
    return out + bytes((value,))
