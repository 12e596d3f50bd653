"""Deployment marks: `POST /api/v1/deployments` records a deployment that CI reports.

Pages show the mark. Verdicts follow the traffic and ignore the mark.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from dashboard.api.key_auth import with_key
from dashboard.common import clock
from dashboard.common.http import error_response, json_response
from dashboard.common.unicode_safety import visible_name, visible_text
from dashboard.fleet.deployment_marks import MAX_MARKS_PER_HOUR, PostedMark, TooManyMarks, mark_post
from dashboard.projects.key_auth import VerifiedKey
from dashboard.projects.selectors import read_key_actor_name

MAX_BODY_BYTES = 16_384
MAX_AGE, MAX_AHEAD = timedelta(days=400), timedelta(minutes=5)
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^\S")]


class Posted(msgspec.Struct, forbid_unknown_fields=True):
    """Request body. `at` is required, so that a repeated request identifies the same deployment."""

    model: Name
    version: Name
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    environment: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] = "production"
    by: Annotated[str, msgspec.Meta(max_length=150)] = ""
    link: Annotated[str, msgspec.Meta(max_length=500, pattern=r"^(https?://[^\s]+)?$")] = ""
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""


@csrf_exempt
@require_POST
@with_key("dep")
def deployments(request: HttpRequest, key: VerifiedKey) -> HttpResponse:
    """Stores a deployment mark: 201 for a new mark, 200 for a known one."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isascii() or not length.isdecimal() or int(length[:9]) > MAX_BODY_BYTES:
        return error_response(
            413, "too_large", f"The body is larger than {MAX_BODY_BYTES:,} bytes."
        )
    if request.content_type != "application/json":
        return error_response(415, "wrong_type", "Content-Type must be application/json.")
    try:
        told = _build_mark(msgspec.json.decode(request.body, type=Posted))
    except (ValueError, OverflowError) as error:
        return error_response(400, "bad_request", str(error))
    try:
        mark, new = mark_post(
            project_id=key.project_id,
            told=told,
            actor_name=read_key_actor_name(key_id=key.id),
            address=request.META.get("REMOTE_ADDR"),
        )
    except TooManyMarks:
        return error_response(
            429,
            "too_many",
            f"More than {MAX_MARKS_PER_HOUR} deployments in an hour; try again later.",
            retry_after=600,
        )
    body = {
        "cw": 1,
        "id": mark.pk,
        "new": new,
        "model": told.model,
        "version": told.version,
        "environment": told.environment,
    }
    return json_response(
        msgspec.json.encode(body | {"at": told.at.isoformat()}), 201 if new else 200
    )


def _build_mark(posted: Posted) -> PostedMark:
    """Validates the posted mark and escapes invisible and bidirectional characters.

    Raises ValueError for a time out of range, or for a name that escaping makes too long.
    """
    at = posted.at.astimezone(clock.now().tzinfo).replace(microsecond=0)
    if not clock.now() - MAX_AGE < at < clock.now() + MAX_AHEAD:
        raise ValueError("at: expected a time within the last 400 days and not in the future.")
    told = PostedMark(
        model=visible_name(posted.model),
        version=visible_name(posted.version),
        environment=visible_name(posted.environment),
        at=at,
        by=visible_name(posted.by),
        link=visible_name(posted.link),
        note=visible_text(posted.note),
    )
    for name, most in (
        ("model", 200),
        ("version", 200),
        ("environment", 64),
        ("by", 150),
        ("link", 500),
    ):
        if len(getattr(told, name)) > most:
            raise ValueError(
                f"{name}: longer than {most} characters, counting the codes of invisible "
                "characters."
            )
    return told
