"""Compilations: the compilations of one version by time, and the cache answers of processes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet, Sum

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
    "phases",
    "cache_fx",
    "cache_aot",
    "cache_autotune",
    "cache_bundle",
    "cache_mega",
    "backend",
    "mode",
    "dynamic",
    "fullgraph",
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
    phases: dict[str, Any]
    """Exclusive seconds of each phase."""
    cache_fx: str
    cache_aot: str
    cache_autotune: str
    cache_bundle: str
    cache_mega: str
    backend: str
    mode: str
    dynamic: str
    fullgraph: bool | None

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


def query_version_compilations(
    *, project_id: int, version_id: int, environment: str, since: datetime
) -> QuerySet[Any, Any]:
    """Return the query of the newest compilations for `parse_version_compilations`."""
    rows = CompileEvent.objects.filter(
        COMPILATION,
        project_id=project_id,
        version_id=version_id,
        environment=environment,
        day__gte=int(since.timestamp() // 86400),
        at__gte=since,
    ).order_by("-at", "-seq", "-number")
    newest: QuerySet[Any, Any] = rows.values_list(*_COLUMNS, "seq", "number")[: MOST_EVENTS + 1]
    return newest


def parse_version_compilations(
    rows: Sequence[tuple[Any, ...]],
) -> tuple[list[VersionCompilation], bool]:
    """Return the newest compilations, oldest first, and whether more exist."""
    newest = sorted(rows, key=lambda row: (row[1], row[-2], row[-1]))[-MOST_EVENTS:]
    return [VersionCompilation(*row[:-2]) for row in newest], len(rows) > MOST_EVENTS


def query_recordings(
    *, project_id: int, version_id: int, environment: str, since: datetime
) -> QuerySet[Any, Any]:
    """Return the query of CUDA graph recordings for `parse_recordings`."""
    hours = VersionProcessHour.objects.filter(
        project_id=project_id,
        version_id=version_id,
        environment=environment,
        day__gte=int(since.timestamp() // 86400),
        hour__gte=int(since.timestamp() // 3600),
        recordings__gt=0,
    )
    summed: QuerySet[Any, Any] = (
        hours.values_list("version_id")
        .annotate(n=Sum("recordings"), seconds=Sum("recording_seconds"))
        .order_by()
    )
    return summed


def parse_recordings(rows: Sequence[tuple[Any, ...]]) -> Recordings:
    """Return the recordings of a version."""
    return Recordings(*rows[0][1:]) if rows else NO_RECORDINGS


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
