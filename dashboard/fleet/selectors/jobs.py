"""Jobs: jobs with several ranks, and the compilations of each rank's newest process."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from django.db.models import Count, Max, QuerySet

from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.fold.process import cache_answer
from dashboard.fleet.models import CompileEvent, Instance
from dashboard.fleet.selectors.compilations.cache_outcomes import COMPILATION
from dashboard.fleet.selectors.instances.role_filters import where_counted, where_helping

MOST_JOBS, MOST_RANKS, MOST_EVENTS = 60, 1024, 20_000


@dataclass(frozen=True)
class Job:
    """A job: `ranks` of its `world_size` ranks have reported."""

    name: str
    version: str
    ranks: int
    world_size: int
    last_seen_at: datetime


class LiveRank(NamedTuple):
    """A process of a job with several ranks, with the columns of Instance that rank comparison
    needs."""

    pk: int
    project_id: int
    version_id: int
    environment: str
    instance_id: str
    job: str
    rank: int
    world_size: int
    started_at: datetime
    last_seen_at: datetime
    compiling_frame: str
    compiling_for: float
    known_calls: int
    eager_calls: int
    latched_eager: Any
    components: Any
    role: str


R = TypeVar("R", Instance, LiveRank)


def list_jobs(*, project_id: int, model_id: int, environment: str) -> list[Job]:
    """Return the jobs with several ranks, the most recent report first; one query."""
    rows = Instance.objects.filter(
        project_id=project_id, model_id=model_id, environment=environment, world_size__gt=1
    )
    rows = (
        rows.exclude(where_helping())
        .exclude(job="")
        .exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
    )
    told = rows.values("job").annotate(
        version=Max("version__name"),
        ranks=Count("rank", distinct=True),
        size=Max("world_size"),
        newest=Max("last_seen_at"),
    )
    return [
        Job(row["job"], row["version"], row["ranks"], row["size"], row["newest"])
        for row in told.order_by("-newest", "job")[:MOST_JOBS]
    ]


def list_job_ranks(*, project_id: int, model_id: int, environment: str, job: str) -> list[Instance]:
    """Return the newest process of every rank, ordered by rank; one query."""
    rows = Instance.objects.filter(
        project_id=project_id, model_id=model_id, environment=environment, job=job, world_size__gt=1
    )
    return select_newest_ranks(
        rows.exclude(where_helping())
        .exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
        .select_related("version")
    )


def select_newest_ranks(instances: Iterable[R]) -> list[R]:
    """Return the newest process of every rank of one job, ordered by rank."""
    newest: dict[int, R] = {}
    for row in sorted(instances, key=lambda one: (one.started_at, one.pk)):
        newest[row.rank] = row
    return [newest[rank] for rank in sorted(newest)][:MOST_RANKS]


def list_live_ranks(*, since_minute: int) -> list[LiveRank]:
    """Return the counted processes of multi-rank jobs of all projects since a minute; one query.

    Runs every few seconds, so it builds no model objects. With thousands of ranks, model objects
    took half of the time.
    """
    rows = Instance.objects.filter(
        where_counted(),
        world_size__gt=1,
        live_minute__gte=since_minute,
        last_minute__gte=since_minute,
    )
    rows = rows.exclude(job="").exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
    return [LiveRank(*row) for row in rows.values_list(*LiveRank._fields)]


def read_rank_compile_events(
    *, project_id: int, instances: Collection[Instance]
) -> dict[int, list[CompileEvent]]:
    """Return the compilations of these processes by Instance.id, oldest first; one query."""
    if not instances:
        return {}
    found: dict[int, list[CompileEvent]] = {}
    newest_first = list(
        _events(project_id, instances).order_by("-at", "-seq", "-number")[:MOST_EVENTS]
    )
    for row in reversed(newest_first):
        found.setdefault(row.instance_id, []).append(row)
    return found


class CompilationRow(NamedTuple):
    """One compilation with the columns that rank comparison needs."""

    instance: int
    at: datetime
    frame: str
    file: str
    line: int
    kind: str
    outcome: str
    key: str
    cache: str


def read_compile_watermark(
    *, project_id: int, instances: Collection[R]
) -> tuple[int, datetime | None]:
    """Return the count and latest time of the compilations.

    While both remain equal, an earlier result of `read_compilation_rows` remains valid.
    """
    found = _events(project_id, instances).aggregate(count=Count("seq"), newest=Max("at"))
    return found["count"], found["newest"]


def read_compilation_rows(*, project_id: int, instances: Collection[R]) -> list[CompilationRow]:
    """Return the compilations of these processes, the newest first; one query."""
    rows = _events(project_id, instances).order_by("-at", "-seq", "-number")
    values = rows.values_list(
        "instance_id",
        "at",
        "frame",
        "file",
        "line",
        "kind",
        "outcome",
        "cache_key",
        "cache_fx",
        "cache_aot",
    )
    return [
        CompilationRow(*row[:8], cache_answer(row[5], row[6], row[8:]))
        for row in values[:MOST_EVENTS]
    ]


def _events(project_id: int, instances: Collection[R]) -> QuerySet[CompileEvent]:
    since = min(one.started_at for one in instances)
    return CompileEvent.objects.filter(
        COMPILATION,
        project_id=project_id,
        day__gte=int(since.timestamp() // 86400) - 1,
        instance_id__in=[one.pk for one in instances],
    )
