"""The compilations of one version in the order in which they ended, and what the caches answered to processes of its model."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from django.db.models import Count, Q, Sum

from dashboard.fleet.models import CompileEvent

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
)


class Compiled(NamedTuple):
    """One compilation, by when it ended; `total` and `saved` are seconds, None where no agent could see them."""

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

    @property
    def seconds(self) -> float:
        """How long it took, as far as that is known."""
        return self.total or 0.0


class Answers(NamedTuple):
    """Compilations of one process that asked the caches for the same and missed for the same cause, if they missed."""

    instance_id: int
    key: str
    miss: str
    compilations: int
    hits: int
    misses: int
    seconds: float
    missed_seconds: float


def version_compilations(*, project_id: int, version_id: int, environment: str, since: datetime) -> tuple[list[Compiled], bool]:
    """The newest of them, oldest first, and whether there were more; one query."""
    rows = CompileEvent.objects.filter(
        project_id=project_id, day__gte=int(since.timestamp() // 86400), version_id=version_id, environment=environment, at__gte=since
    )
    newest = list(rows.order_by("-at", "-seq", "-number").values_list(*_COLUMNS)[: MOST_EVENTS + 1])
    return [Compiled(*row) for row in reversed(newest[:MOST_EVENTS])], len(newest) > MOST_EVENTS


def processes_answers(*, project_id: int, instance_ids: Collection[int], since: datetime) -> list[Answers]:
    """By process, key and cause; one query. `since` is before all of their starts."""
    if not instance_ids:
        return []
    hit, miss = Q(cache_fx="hit") | Q(cache_aot="hit"), Q(cache_fx="miss")
    rows = CompileEvent.objects.filter(project_id=project_id, day__gte=int(since.timestamp() // 86400), instance_id__in=list(instance_ids))
    counted = rows.values("instance_id", "cache_key", "miss").annotate(
        n=Count("number"),
        hits=Count("number", filter=hit & ~miss),
        misses=Count("number", filter=miss),
        seconds=Sum("total"),
        missed_seconds=Sum("total", filter=miss),
    )
    columns = ("instance_id", "cache_key", "miss", "n", "hits", "misses", "seconds", "missed_seconds")
    rows_found = counted.order_by("instance_id", "cache_key", "miss").values_list(*columns)
    return [Answers(id, key, miss, n, hits, misses, took or 0.0, lost or 0.0) for id, key, miss, n, hits, misses, took, lost in rows_found]
