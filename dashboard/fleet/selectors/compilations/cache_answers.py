"""Cache answers: answers of the compile caches per version, in counts and seconds, with miss
causes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet, Sum

from dashboard.fleet.selectors.compilations.cache_outcomes import CACHE_LOOKUP
from dashboard.fleet.selectors.compilations.compile_events import filter_compile_events

CACHES = ("fx", "aot", "autotune", "bundle", "mega")


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
