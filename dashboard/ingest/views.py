"""`POST /api/v1/reports`: what comes in is durable before it is acknowledged; what is refused is counted and hears why."""

from __future__ import annotations

import logging

from compilewatch.wire.ack import Ack
from compilewatch.wire.codec import dumps
from compilewatch.wire.errors import ERROR_CODES
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from dashboard.common import clock
from dashboard.common.http import busy_answer, error_answer, json_answer
from dashboard.ingest.admission import Admission, bucket_of, rate_check
from dashboard.ingest.batch import Batch, batch_read
from dashboard.ingest.body import Refused
from dashboard.ingest.committer import COMMITTER
from dashboard.ingest.head import body_read, head_check, key_require, method_check
from dashboard.ingest.refusals import refusal_note
from dashboard.ingest.selectors import commands_live
from dashboard.projects.keycheck import KnownKey

logger = logging.getLogger(__name__)

ADMISSION = Admission()


@csrf_exempt
def reports_receive(request: HttpRequest) -> HttpResponse:
    """The endpoint that agents send to; the key in the header is all that counts, cookies are ignored."""
    key: KnownKey | None = None
    try:
        with ADMISSION.enter():
            method_check(request)
            key = key_require(request)
            length = head_check(request)
            return _accept(request, key, length)
    except Refused as refused:
        return _refuse(refused, key.project_id if key else 0)
    except DatabaseError as error:
        logger.warning("reports were not stored: %s", error)
        _count(key.project_id if key else 0, "busy")
        return busy_answer()


def _accept(request: HttpRequest, key: KnownKey, length: int) -> HttpResponse:
    bucket = bucket_of(key.project_id, key.project_settings)
    rate_check(bucket)
    received = clock.unix()
    batch = batch_read(text=body_read(request, length), project_id=key.project_id, received=received)
    bucket.charge(len(batch.items) + len(batch.rejected))
    stored = COMMITTER.store(batch)
    for rejected in stored.rejected:
        _count(key.project_id, rejected.code)
    ack = Ack(acked=stored.acked, next_seq=stored.next_seq, commands=_commands(batch), rejected=stored.rejected)
    return json_answer(dumps(ack))


def _commands(batch: Batch) -> list[dict[str, object]]:
    try:
        return commands_live(project_id=batch.project_id, model=batch.model, version=batch.version)
    except DatabaseError as error:
        # The reports are durable: they are acknowledged, and the commands come with the next answer.
        logger.warning("commands were not read: %s", error)
        return []


def _refuse(refused: Refused, project_id: int) -> HttpResponse:
    _count(project_id, refused.code)
    status = ERROR_CODES[refused.code][0]
    answer = error_answer(status, refused.code, refused.detail, refused.retry_after)
    answer._has_been_logged = True  # type: ignore[attr-defined]  # refusals are counted; a log line each would be a flood
    if status == 401:
        answer["WWW-Authenticate"] = "Bearer"
    if status == 405:
        answer["Allow"] = "POST"
    return answer


def _count(project_id: int, code: str) -> None:
    refusal_note(project_id=project_id, code=code)
    COMMITTER.start()
