"""Cache answers: answers of the compile caches per version, in counts and seconds, with miss
causes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN
from django.db.models import Count, Max, QuerySet, Sum

from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.models import CompileEvent
from dashboard.fleet.selectors.compilations.cache_outcomes import CACHE_LOOKUP
from dashboard.fleet.selectors.compilations.compile_events import filter_compile_events

CACHES = ("fx", "aot", "autotune", "bundle", "mega")
MOST_UNEXPLAINED, MOST_STARTS = 40, 60


class VersionCacheAnswers(NamedTuple):
    """Compilations of one version with equal cache answers and an equal miss cause.

    `seconds` and `saved` cover the whole compilations.
    """

    version_id: int
    answers: dict[str, str]
    miss: str
    compilations: int
    seconds: float
    saved: float


class UnexplainedMiss(NamedTuple):
    """Compilations of one instance that missed, and whose agent knew no earlier run."""

    version_id: int
    instance_id: int
    compilations: int
    seconds: float


class StartMisses(NamedTuple):
    """Compilations of one instance that missed the caches, by cause."""

    cause: str
    compilations: int
    seconds: float


def read_cache_answers(
    *, within: Mapping[str, Any], project_id: int, started: Collection[int], since: datetime | None
) -> tuple[list[VersionCacheAnswers], dict[int, list[StartMisses]]]:
    """Return the cache answers of the compilations `within`, and the miss causes of the instances
    in `started`.

    Takes one query. `within` holds the arguments of `filter_compile_events`. `since` is before the
    start of each instance in `started`. Causes are ordered by cost, the highest first.
    """
    answered, missed = fetch_rows_together(
        query_version_answers(**within), _query_start_misses(project_id, started, since)
    )
    answers = parse_version_answers(answered)
    starts: dict[int, list[StartMisses]] = {}
    for instance, miss, n, seconds in sorted(missed, key=lambda row: (-(row[3] or 0.0), row[1])):
        starts.setdefault(instance, []).append(StartMisses(miss, n, seconds or 0.0))
    return answers, starts


def query_version_answers(**within: Any) -> QuerySet[Any, Any]:
    """Return the query of the answers for `parse_version_answers`; the arguments are those of
    `filter_compile_events`."""
    of = (
        filter_compile_events(**within)
        .filter(CACHE_LOOKUP)
        .values_list("version_id", "miss", *(f"cache_{cache}" for cache in CACHES))
    )
    counted: QuerySet[Any, Any] = of.annotate(
        n=Count("number"), seconds=Sum("total"), spared=Sum("saved")
    ).order_by()
    return counted


def parse_version_answers(rows: Iterable[tuple[Any, ...]]) -> list[VersionCacheAnswers]:
    """Return the cache answers of versions."""
    return [
        VersionCacheAnswers(
            version,
            {cache: said for cache, said in zip(CACHES, row, strict=True) if said},
            miss,
            n,
            seconds or 0.0,
            saved or 0.0,
        )
        for version, miss, *row, n, seconds, saved in rows
    ]


def list_unexplained_misses(within: Mapping[str, Any]) -> list[UnexplainedMiss]:
    """Return the instances whose agents knew no earlier run, the newest first."""
    rows = (
        filter_compile_events(**within)
        .filter(CACHE_LOOKUP, miss=NO_EARLIER_RUN)
        .values("version_id", "instance_id")
    )
    found = rows.annotate(n=Count("number"), seconds=Sum("total"), newest=Max("at")).order_by(
        "-newest", "instance_id"
    )
    return [
        UnexplainedMiss(row["version_id"], row["instance_id"], row["n"], row["seconds"] or 0.0)
        for row in found[:MOST_UNEXPLAINED]
    ]


def _query_start_misses(
    project_id: int, started: Collection[int], since: datetime | None
) -> QuerySet[Any, Any] | None:
    if not started or since is None:
        return None
    rows = CompileEvent.objects.filter(
        CACHE_LOOKUP,
        project_id=project_id,
        day__gte=int(since.timestamp() // 86400),
        instance_id__in=started,
    )
    of = rows.exclude(miss="").values_list("instance_id", "miss")
    counted: QuerySet[Any, Any] = of.annotate(n=Count("number"), seconds=Sum("total")).order_by()
    return counted
