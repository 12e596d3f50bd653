"""Signed commands to instances: each is written once with a rising number, and answers to reports
carry it while it is live."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from compilewatch.wire.command import ED25519_CONTEXT, MAC_BYTES, command_body, command_sign
from compilewatch.wire.command import Command as Order
from django.db.models import Max

from dashboard.common import clock
from dashboard.ingest.models import Command
from dashboard.projects.command_key import sign_command
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project

CACHE_TTL_S = 1.0
"""Seconds for which a process uses the commands that it has read."""


class CommandTarget(NamedTuple):
    """The fields that a command addresses and that an instance reports about itself."""

    model: str
    version: str
    environment: str


class LiveCommand(NamedTuple):
    """A command that an answer may carry."""

    place: CommandTarget
    order: Order
    carried: dict[str, Any]


_cache: dict[int, tuple[float, list[LiveCommand]]] = {}


def command_issue(*, project: Project, key: str, by: str, order: Callable[[int], Order]) -> Order:
    """Signs the order that `order` creates for the next number, also with the MAC of the previous
    release, and publishes it in answers. The caller holds a lock on the project's row."""
    highest = for_project(Command, project).aggregate(highest=Max("counter"))["highest"] or 0
    made = order(highest + 1)
    Command.objects.create(
        project=project,
        verb=made.verb,
        model_name=made.model,
        version_name=made.version,
        target={
            "id": made.id,
            "environment": made.environment,
            "share": made.share,
            "instances": made.instances,
            "ask": made.ask,
        },
        counter=made.counter,
        signed=command_sign(made, key),
        signatures=sign_command(project, ED25519_CONTEXT + command_body(made)),
        issued_at=clock.now(),
        not_before=clock.at(made.not_before),
        expires_at=clock.at(made.expires),
        issued_by_name=by,
    )
    return made


def list_live_commands(
    *, project_id: int, place: CommandTarget, instance: str, job: str
) -> list[dict[str, Any]]:
    """The newest live command for an instance, as the answer carries it. It may be one second
    old."""
    asked, live = _cache.get(project_id, (float("-inf"), []))
    if time.monotonic() - asked > CACHE_TTL_S:
        # Other threads continue with the cached commands. If the read fails, the next read is due
        # in one second.
        _cache[project_id] = (time.monotonic(), live)
        live = _read_live(project_id)
        _cache[project_id] = (time.monotonic(), live)
    return next(
        (
            [dict(one.carried)]
            for one in live
            if one.place == place and one.order.includes(instance, job)
        ),
        [],
    )


def clear_command_cache() -> None:
    """Clears the cache, so that the next answer reads the database again, as after a restart."""
    _cache.clear()


def _read_live(project_id: int) -> list[LiveCommand]:
    """Live commands, newest first. A command is sent before its start, because all ranks of a job
    wait for it."""
    rows = (
        for_project(Command, project_id)
        .filter(withdrawn_at=None, expires_at__gt=clock.now())
        .order_by("-counter")
    )
    return [_to_live_command(row) for row in rows]


def _to_live_command(row: Command) -> LiveCommand:
    place = CommandTarget(row.model_name, row.version_name, str(row.target.get("environment", "")))
    order = Order(
        id=str(row.target.get("id", "")),
        project="",
        verb=row.verb,
        counter=row.counter,
        model=place.model,
        version=place.version,
        environment=place.environment,
        not_before=row.not_before.timestamp(),
        expires=row.expires_at.timestamp(),
        instances=list(row.target.get("instances", [])),
        share=float(row.target.get("share", 0.0)),
    )
    return LiveCommand(place, order, _build_payload(bytes(row.signed), row.signatures))


def _build_payload(signed: bytes, signatures: dict[str, str] | None) -> dict[str, Any]:
    """Carries only the signatures of the issue. A row that other code wrote gets no signature
    here."""
    found: dict[str, Any] = {"signed": base64.b64encode(signed).decode()}
    return (
        {**found, "body": base64.b64encode(signed[MAC_BYTES:]).decode(), "ed25519": signatures}
        if signatures
        else found
    )
