"""Whether this process lives, and what it stands on: the database, its migrations, and the workers
behind it."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.common import clock
from dashboard.common.http import json_response
from dashboard.common.models import Heartbeat

SLOW_DATABASE_S = 0.25
"""Seconds for the smallest question there is; a healthy database takes a thousandth of that."""

WORKER_GONE_AFTER_S = 30.0
"""Seconds since the last sign of life after which a worker counts as gone: six heartbeats."""

FOLD_EXPECTED_WITHIN_S = 60.0
"""Seconds in which a worker that works has ended a fold: beat asks for one every two seconds."""

MIN_FREE_RATIO, MIN_FREE_BYTES = 0.05, 1 << 30
"""So much of a disk has to be free; of the two what is less."""
MIN_SERVING_BYTES = 4 << 20
"""Bytes that have to be free for reports to be stored, where the database is a file here."""

_migrated: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: what was found, how much is too much, and a sentence for
    people.

    `value` is None where it is not known. `serves` is False if this process cannot do its work
    without it; what is merely behind it makes the line unhealthy, but reports are still taken and
    pages still open."""

    name: str
    ok: bool
    value: float | None
    limit: float | None
    unit: str
    sentence: str
    serves: bool = True


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return json_response(b'{"cw":1,"status":"ok"}')


def database_check() -> Check:
    """How long the database takes to answer at all, and whether its file has room to grow."""
    begun = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    took = time.perf_counter() - begun
    if connection.vendor == "sqlite" and (
        full := _describe_full_disk(str(connection.settings_dict["NAME"]))
    ):
        return Check("database", False, took, SLOW_DATABASE_S, "s", full, serves=False)
    if took > SLOW_DATABASE_S:
        return Check(
            "database",
            False,
            took,
            SLOW_DATABASE_S,
            "s",
            f"The database takes {took:.2f} s to answer at all: it is slow.",
        )
    return Check("database", True, took, SLOW_DATABASE_S, "s", "The database answers.")


def _describe_full_disk(file: str) -> str:
    """What is said of a disk on which no report can be stored; empty while there is room."""
    place = Path(file).parent
    if place.is_dir() and shutil.disk_usage(place).free < MIN_SERVING_BYTES:
        return (
            f"The disk of {file} is full: reports are refused until there is room, and agents "
            "keep what they have."
        )
    return ""


def migrations_check() -> Check:
    """How many migrations are missing; once there are none that is not asked again."""
    name = str(connection.settings_dict["NAME"])
    waiting = 0
    if _migrated.get("database") != name:
        executor = MigrationExecutor(connection)
        waiting = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if waiting:
        what = "1 migration is" if waiting == 1 else f"{waiting} migrations are"
        sentence = f"{what} not applied; run manage.py migrate."
        return Check("migrations", False, waiting, 0, "migrations", sentence, serves=False)
    _migrated["database"] = name
    return Check("migrations", True, 0, 0, "migrations", "Every migration is applied.")


def format_age(seconds: float) -> str:
    """150 s, 50 min, 3 h: as somebody says it who looks at a clock."""
    if seconds < 300:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def workers_check() -> Check:
    """How long ago the last worker was heard of, and whether one still folds."""
    workers = [beat for beat in list_heartbeats() if beat.kind == "worker"]
    if not workers:
        return Check(
            "workers",
            False,
            None,
            WORKER_GONE_AFTER_S,
            "s",
            "No worker was heard of in the last day: reports wait and nothing is judged.",
        )
    age = min(_age(worker.seen_at) for worker in workers)
    if age > WORKER_GONE_AFTER_S:
        return Check(
            "workers",
            False,
            age,
            WORKER_GONE_AFTER_S,
            "s",
            f"No worker was heard of for {format_age(age)}: reports wait and nothing is judged.",
        )
    alive = [worker for worker in workers if worker_state(worker) != "gone"]
    if not any(worker_state(worker) == "works" for worker in alive):
        return Check(
            "workers",
            False,
            age,
            WORKER_GONE_AFTER_S,
            "s",
            f"{_workers(alive)} here, but none has ended a fold in the last minute.",
        )
    return Check("workers", True, age, WORKER_GONE_AFTER_S, "s", f"{_workers(alive)} at work.")


def disk_check() -> Check:
    """The disk of the data folder; a database elsewhere has its own."""
    if not settings.EMBEDDED:
        return Check(
            "disk",
            True,
            None,
            None,
            "",
            "Nothing is stored on this machine: the disk that can fill is that of PostgreSQL.",
        )
    here = settings.ENV.data if settings.ENV.data.exists() else Path.cwd()
    usage = shutil.disk_usage(here)
    least = min(MIN_FREE_BYTES, usage.total * MIN_FREE_RATIO)
    free = f"{usage.free / (1 << 30):.1f} GiB of {usage.total / (1 << 30):.1f} GiB are free"
    if usage.free < least:
        said = (
            f"The disk of the data folder is nearly full: {free}. Once it is full, what is "
            "stored there cannot grow: make room."
        )
        return Check("disk", False, usage.free, least, "bytes", said)
    return Check(
        "disk", True, usage.free, least, "bytes", f"{free} on the disk of the data folder."
    )


def list_heartbeats() -> list[Heartbeat]:
    """Every worker and every beat that was heard of in the last day."""
    return list(Heartbeat.objects.order_by("kind", "name"))


def worker_state(worker: Heartbeat) -> str:
    """`works`, `idle` if it lives but folds nothing, or `gone`."""
    if _age(worker.seen_at) > WORKER_GONE_AFTER_S:
        return "gone"
    folded = worker.folded_at
    return (
        "works"
        if worker.kind == "beat" or (folded is not None and _age(folded) <= FOLD_EXPECTED_WITHIN_S)
        else "idle"
    )


def _age(moment: datetime) -> float:
    return max(0.0, (clock.now() - moment).total_seconds())


def _workers(workers: list[Heartbeat]) -> str:
    return f"{len(workers)} {'worker is' if len(workers) == 1 else 'workers are'}"
