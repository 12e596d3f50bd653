"""Compilations: the compilations of one version by time, and the cache answers of processes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Count, Sum

from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.models import CompileEvent, VersionProcessHour
from dashboard.fleet.selectors.compilations.cache_outcomes import (
    CACHE_LOOKUP,
    COMPILATION,
    HIT,
    MISS,
)

MOST_EVENTS = 3000
_COLUMNS = (
    "instance_id",
    "at",
    "kind",
    "outcome",
    "frame",
    "file",
    "line",
    "total",
    "saved",
    "in_request",
    "reason",
    "reason_kind",
    "miss",
    "entries",
    "entry_limit",
)


class VersionCompilation(NamedTuple):
    """One compilation, by the time it ended.

    `total` and `saved` are seconds, None if not reported.
    """

    instance_id: int
    at: datetime
    kind: str
    outcome: str
    frame: str
    file: str
    line: int
    total: float | None
    saved: float | None
    in_request: bool
    reason: str
    reason_kind: str
    miss: str
    entries: int | None
    """Cache entries of the code object afterwards; None if not reported."""
    entry_limit: int | None
    """Limit of the entries; None if unlimited or unknown."""

    @property
    def seconds(self) -> float:
        """Duration in seconds, 0 if unknown."""
        return self.total or 0.0


class ProcessCacheAnswers(NamedTuple):
    """Compilations of one process with an equal cache key and an equal miss cause."""

    instance_id: int
    key: str
    miss: str
    compilations: int
    hits: int
    misses: int
    seconds: float
    missed_seconds: float


class Recordings(NamedTuple):
    """Number of recorded CUDA graphs, and their seconds; recordings are no compilations."""

    graphs: int
    seconds: float


NO_RECORDINGS = Recordings(0, 0.0)


def read_version_compilations(
    *, project_id: int, version_id: int, environment: str, since: datetime
) -> tuple[list[VersionCompilation], bool, Recordings]:
    """Return the newest compilations, oldest first, whether more exist, and the recordings; one
    query."""
    day = int(since.timestamp() // 86400)
    of: dict[str, Any] = {
        "project_id": project_id,
        "version_id": version_id,
        "environment": environment,
        "day__gte": day,
    }
    rows = CompileEvent.objects.filter(COMPILATION, at__gte=since, **of).order_by(
        "-at", "-seq", "-number"
    )
    hours = VersionProcessHour.objects.filter(
        hour__gte=int(since.timestamp() // 3600), recordings__gt=0, **of
    )
    recorded = (
        hours.values_list("version_id")
        .annotate(n=Sum("recordings"), seconds=Sum("recording_seconds"))
        .order_by()
    )
    found, sums = fetch_rows_together(
        rows.values_list(*_COLUMNS, "seq", "number")[: MOST_EVENTS + 1], recorded
    )
    newest = sorted(found, key=lambda row: (row[1], row[-2], row[-1]))[-MOST_EVENTS:]
    recordings = Recordings(*sums[0][1:]) if sums else NO_RECORDINGS
    return [VersionCompilation(*row[:-2]) for row in newest], len(found) > MOST_EVENTS, recordings


def read_process_answers(
    *, project_id: int, instance_ids: Collection[int], since: datetime
) -> list[ProcessCacheAnswers]:
    """Return the answers by process, key and cause; one query.

    `since` is before the start of each process.
    """
    if not instance_ids:
        return []
    day = int(since.timestamp() // 86400)
    rows = CompileEvent.objects.filter(
        CACHE_LOOKUP, project_id=project_id, day__gte=day, instance_id__in=list(instance_ids)
    )
    counted = rows.values("instance_id", "cache_key", "miss").annotate(
        n=Count("number"),
        hits=Count("number", filter=HIT),
        misses=Count("number", filter=MISS),
        seconds=Sum("total"),
        missed_seconds=Sum("total", filter=MISS),
    )
    columns = (
        "instance_id",
        "cache_key",
        "miss",
        "n",
        "hits",
        "misses",
        "seconds",
        "missed_seconds",
    )
    rows_found = counted.order_by("instance_id", "cache_key", "miss").values_list(*columns)
    return [
        ProcessCacheAnswers(id, key, miss, n, hits, misses, took or 0.0, lost or 0.0)
        for id, key, miss, n, hits, misses, took, lost in rows_found
    ]
