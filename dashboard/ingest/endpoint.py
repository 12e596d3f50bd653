"""Report endpoint: `POST /api/v1/reports`. Reports are durable before they are acknowledged. A
refusal is counted and answered with its reason.

The endpoint uses WSGI directly. Django's request and middleware would cost more than all the work
on a report.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from compilewatch.wire.ack import Ack
from compilewatch.wire.codec import dumps
from compilewatch.wire.errors import ERROR_CODES, Error
from django.db import DatabaseError, connection

from dashboard.common import clock
from dashboard.common.failpoints import crash_point
from dashboard.common.log_throttle import LogThrottle
from dashboard.ingest.admission import ADMISSION, quota_check
from dashboard.ingest.batch import Batch, StoreResult, batch_read
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.commands import CommandTarget, list_live_commands
from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.intake_counters import record_intake
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

_log_throttle = LogThrottle()
DATABASE_UNAVAILABLE = RefusalError(
    "busy", "The database does not respond; nothing was stored. Try again.", retry_after=5
)


class WsgiResponse(NamedTuple):
    """Status, additional headers, and the JSON body of an answer."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def handle_reports(environ: Environ) -> WsgiResponse:
    """The endpoint's answer to a request. Only the key in the header authenticates; cookies are
    ignored."""
    key: VerifiedKey | None = None
    try:
        with ADMISSION:
            method_check(environ)
            key = key_require(environ)
            length = head_check(environ)
            return _accept(environ, key, length)
    except RefusalError as refused:
        return request_refuse(refused, key.project_id if key else 0)
    except DatabaseError as error:
        logger.warning("reports were not stored: %s", error)
        return request_refuse(DATABASE_UNAVAILABLE, key.project_id if key else 0)
    finally:
        if connection.connection is not None:
            connection.close_if_unusable_or_obsolete()


def _accept(environ: Environ, key: VerifiedKey, length: int) -> WsgiResponse:
    bucket = quota_check(key.project_id, key.project_settings)
    batch = batch_read(
        text=body_read(environ, length), project_id=key.project_id, received=clock.unix()
    )
    crash_point("web_parsed")
    bucket.charge(len(batch.items) + len(batch.rejected))
    stored = COMMITTER.store(batch)
    record_intake(project_id=key.project_id, reports=len(stored.acked), size=length)
    for rejected in stored.rejected:
        _count_refusal(key.project_id, rejected.code)
    return WsgiResponse(200, [], _encode_ack(stored, _read_commands(batch)))


def _encode_ack(stored: StoreResult, commands: list[dict[str, Any]]) -> bytes:
    if stored.rejected or commands or stored.held is not None:
        return dumps(
            Ack(
                stored.acked,
                stored.next_seq,
                commands=commands,
                rejected=stored.rejected,
                held=stored.held,
            )
        )
    ranges = ",".join([f"[{first},{last}]" for first, last in stored.acked])
    return b'{"acked":[%b],"next_seq":%d,"commands":[],"cw":1}' % (ranges.encode(), stored.next_seq)


def _read_commands(batch: Batch) -> list[dict[str, Any]]:
    try:
        place = CommandTarget(batch.model, batch.version, batch.environment)
        return list_live_commands(
            project_id=batch.project_id, place=place, instance=batch.instance_id, job=batch.job
        )
    except DatabaseError as error:
        # The reports are durable, so they are acknowledged. The next answer carries the commands.
        logger.warning("commands were not read: %s", error)
        return []


def request_refuse(refused: RefusalError, project_id: int = 0) -> WsgiResponse:
    """The answer to a refused request. The refusal is counted, and logged at a limited rate."""
    _count_refusal(project_id, refused.code)
    if times := _log_throttle.times((project_id, refused.code)):
        of = f"of project {project_id}" if project_id else "with an unknown key"
        logger.info(
            "a request %s was refused (%d since the last such line): %s: %s",
            of,
            times,
            refused.code,
            " ".join(refused.detail.split()),
        )
    status = ERROR_CODES[refused.code][0]
    headers = []
    if refused.retry_after is not None:
        headers.append(("Retry-After", str(refused.retry_after)))
    if status == 401:
        headers.append(("WWW-Authenticate", "Bearer"))
    if status == 405:
        headers.append(("Allow", "POST"))
    return WsgiResponse(status, headers, dumps(Error(code=refused.code, detail=refused.detail)))


def _count_refusal(project_id: int, code: str) -> None:
    record_refusal(project_id=project_id, code=code)
    COMMITTER.start()
