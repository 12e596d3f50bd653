"""Health checks of this process: database, migrations, workers and disk."""

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
from dashboard.common.heartbeat import WORKER
from dashboard.common.http import json_response
from dashboard.common.models import Heartbeat

SLOW_DATABASE_S = 0.25
"""Seconds for the smallest query that count as slow; a healthy database takes a thousandth of
that."""

WORKER_GONE_AFTER_S = 30.0
"""Seconds since the last heartbeat after which a worker counts as gone: six heartbeats."""

FOLD_EXPECTED_WITHIN_S = 60.0
"""Seconds within which a working worker finishes a fold: the scheduler requests one each second."""

MIN_FREE_RATIO, MIN_FREE_BYTES = 0.05, 1 << 30
"""Free space that a disk needs: the smaller of the two."""
MIN_SERVING_BYTES = 4 << 20
"""Free bytes that storing reports requires, if the database is a local file."""

_migrated: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check: value, limit, and a sentence for people.

    `value` is None if unknown. `serves` is False if this process cannot work without the checked
    part. A failed check with `serves` marks only the pipeline as unhealthy: the server still
    accepts reports and serves pages.
    """

    name: str
    ok: bool
    value: float | None
    limit: float | None
    unit: str
    sentence: str
    serves: bool = True


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answers that the process is alive, without any check."""
    return json_response(b'{"cw":1,"status":"ok"}')


def database_check() -> Check:
    """Checks the answer time of the database, and the free space for a database file."""
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
            f"The database is slow: the smallest query takes {took:.2f} s.",
        )
    return Check("database", True, took, SLOW_DATABASE_S, "s", "The database answers.")


def _describe_full_disk(file: str) -> str:
    """Describes a disk that is too full to store reports; empty while there is room."""
    place = Path(file).parent
    if place.is_dir() and shutil.disk_usage(place).free < MIN_SERVING_BYTES:
        return (
            f"The disk of {file} is full: reports are refused until space is free; agents keep "
            "their data."
        )
    return ""


def migrations_check() -> Check:
    """Counts missing migrations. A result of zero is cached."""
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
    return Check("migrations", True, 0, 0, "migrations", "All migrations are applied.")


def format_age(seconds: float) -> str:
    """Formats an age for people: 150 s, 50 min, 3 h."""
    if seconds < 300:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def workers_check() -> Check:
    """Checks the age of the newest worker heartbeat, and whether a worker still folds."""
    workers = list_heartbeats()
    if not workers:
        return Check(
            "workers",
            False,
            None,
            WORKER_GONE_AFTER_S,
            "s",
            "No worker was online in the last day: reports are queued and not evaluated.",
        )
    age = min(_age(worker.seen_at) for worker in workers)
    if age > WORKER_GONE_AFTER_S:
        return Check(
            "workers",
            False,
            age,
            WORKER_GONE_AFTER_S,
            "s",
            f"No worker has been online for {format_age(age)}: reports are queued and not "
            "evaluated.",
        )
    alive = [worker for worker in workers if worker_state(worker) != "gone"]
    if not any(worker_state(worker) == "works" for worker in alive):
        return Check(
            "workers",
            False,
            age,
            WORKER_GONE_AFTER_S,
            "s",
            f"{_workers(alive)} online, but none has finished a fold in the last minute.",
        )
    return Check("workers", True, age, WORKER_GONE_AFTER_S, "s", f"{_workers(alive)} working.")


def disk_check() -> Check:
    """Checks the disk of the data folder; a remote database has its own disk."""
    if not settings.EMBEDDED:
        return Check(
            "disk",
            True,
            None,
            None,
            "",
            "No data is stored on this machine: monitor the disk of the PostgreSQL server.",
        )
    here = settings.ENV.data if settings.ENV.data.exists() else Path.cwd()
    usage = shutil.disk_usage(here)
    least = min(MIN_FREE_BYTES, usage.total * MIN_FREE_RATIO)
    free = f"{usage.free / (1 << 30):.1f} GiB of {usage.total / (1 << 30):.1f} GiB are free"
    if usage.free < least:
        said = (
            f"The disk of the data folder is nearly full: {free}. Free some space: a full disk "
            "cannot store more data."
        )
        return Check("disk", False, usage.free, least, "bytes", said)
    return Check(
        "disk", True, usage.free, least, "bytes", f"{free} on the disk of the data folder."
    )


def list_heartbeats() -> list[Heartbeat]:
    """Lists every worker of the last day."""
    return list(Heartbeat.objects.filter(kind=WORKER).order_by("name"))


def worker_state(worker: Heartbeat) -> str:
    """Returns `works`, `idle` (alive without folds) or `gone`."""
    if _age(worker.seen_at) > WORKER_GONE_AFTER_S:
        return "gone"
    folded = worker.folded_at
    return "works" if folded is not None and _age(folded) <= FOLD_EXPECTED_WITHIN_S else "idle"


def _age(moment: datetime) -> float:
    return max(0.0, (clock.now() - moment).total_seconds())


def _workers(workers: list[Heartbeat]) -> str:
    return f"{len(workers)} {'worker is' if len(workers) == 1 else 'workers are'}"
