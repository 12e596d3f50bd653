"""OTLP endpoint: `POST /api/v1/otlp/v1/metrics`. Metrics are durable before they are acknowledged,
by the same path as reports."""

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
from dashboard.common.http import API_HEADERS, error_response, json_response
from dashboard.ingest.admission import ADMISSION, quota_check
from dashboard.ingest.batch import batch_read
from dashboard.ingest.body_decoder import RefusalError, text_check
from dashboard.ingest.endpoint import DATABASE_UNAVAILABLE
from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.intake_counters import record_intake
from dashboard.ingest.otlp.convert import Conversion, convert_metrics
from dashboard.ingest.otlp.protobuf import decode_metrics
from dashboard.ingest.refusal_counters import record_refusal
from dashboard.ingest.request_checks import (
    Environ,
    body_read,
    head_check,
    key_require,
    method_check,
)
from dashboard.projects.key_auth import VerifiedKey

logger = logging.getLogger(__name__)

JSON, PROTOBUF = "application/json", "application/x-protobuf"


@csrf_exempt
def metrics_receive(request: WSGIRequest) -> HttpResponse:
    """Answers in the form that OTLP requires, with the encoding of the request."""
    environ, key = request.environ, None
    binary = environ.get("CONTENT_TYPE", "").partition(";")[0].strip() == PROTOBUF
    try:
        with ADMISSION:
            method_check(environ)
            key = key_require(environ)
            taken = _accept(environ, key, binary)
    except RefusalError as refused:
        return _refuse(refused, key)
    except DatabaseError as error:
        logger.warning("metrics were not stored: %s", error)
        return _refuse(DATABASE_UNAVAILABLE, key)
    return _build_response(taken, binary)


def _accept(environ: Environ, key: VerifiedKey, binary: bool) -> Conversion:
    length = head_check(environ, PROTOBUF if binary else JSON)
    bucket = quota_check(key.project_id, key.project_settings)
    body, now = body_read(environ, length), clock.unix()
    try:
        taken = convert_metrics(
            decode_metrics(body) if binary else _parse_json(body), key.project_id, now
        )
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise RefusalError(
            "bad_request",
            f"The body is not an ExportMetricsServiceRequest: {type(error).__name__}.",
        ) from None
    for request in taken.requests:
        batch = batch_read(text=dumps(request), project_id=key.project_id, received=now)
        bucket.charge(len(batch.items) + len(batch.rejected))
        stored = COMMITTER.store(batch)
        record_intake(
            project_id=key.project_id, reports=len(stored.acked), size=length // len(taken.requests)
        )
        for rejected in stored.rejected:
            record_refusal(project_id=key.project_id, code=rejected.code)
            taken.refuse(1, f"{rejected.code}: {rejected.detail}")
    COMMITTER.start()
    return taken


def _parse_json(body: bytes) -> dict[str, Any]:
    text_check(body)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusalError("not_json", f"The body is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise RefusalError(
            "bad_request", "The body is not an ExportMetricsServiceRequest: expected an object."
        )
    return found


def _refuse(refused: RefusalError, key: VerifiedKey | None) -> HttpResponse:
    """An error in the format of all of /api/, for either encoding of the request: OTLP clients read
    only the status."""
    record_refusal(project_id=key.project_id if key else 0, code=refused.code)
    COMMITTER.start()
    status = ERROR_CODES[refused.code][0]
    response = error_response(status, refused.code, refused.detail, refused.retry_after)
    if status in (401, 405):
        response["WWW-Authenticate" if status == 401 else "Allow"] = (
            "Bearer" if status == 401 else "POST"
        )
    response._has_been_logged = True  # type: ignore[attr-defined]  # counted, not logged
    return response


def _build_response(taken: Conversion, binary: bool) -> HttpResponse:
    """An ExportMetricsServiceResponse with the first reason of rejected points."""
    if not binary:
        partial = {"rejectedDataPoints": str(taken.left_out), "errorMessage": taken.why}
        return json_response(
            json.dumps({"partialSuccess": partial} if taken.left_out else {}).encode()
        )
    told = (
        _encode_field(
            1,
            _encode_varint(1 << 3)
            + _encode_varint(taken.left_out)
            + _encode_field(2, taken.why.encode()),
        )
        if taken.left_out
        else b""
    )
    return HttpResponse(told, headers={**API_HEADERS, "Content-Type": PROTOBUF})


def _encode_field(number: int, data: bytes) -> bytes:
    """A protobuf field of type string or message."""
    return _encode_varint(number << 3 | 2) + _encode_varint(len(data)) + data


def _encode_varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes((value & 127 | 128,))
        value >>= 7
    return out + bytes((value,))
