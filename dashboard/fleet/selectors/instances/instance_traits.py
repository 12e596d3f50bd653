"""Instance traits: properties that may distinguish instances.

Machine, libraries, configuration, compile caches, shapes, and findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from compilewatch.wire.messages import KERNEL
from django.db.models import BigIntegerField, Count, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Cast

from dashboard.common import clock
from dashboard.common.raw_queries import Rows, fetch_rows_together
from dashboard.fleet.models import CompileEvent, FindingInstance, Instance, RegionMinute, Series
from dashboard.fleet.selectors.compilations.cache_outcomes import HIT, MISS
from dashboard.fleet.selectors.versions.version_series import Span, filter_days

MAX_INSTANCES = 400
MOST_FINDINGS = 60
SHAPE_MINUTES = 15
IDENTITY_TRAITS = ("gpu_count", "gpu_capability", "driver", "cuda", "triton", "python")
_MAX_CHARS = 100

Traits = dict[str, str]


def read_instance_traits(
    *, project_id: int, instance_ids: Collection[int], since: datetime, newest: int
) -> dict[int, Traits]:
    """Return the traits of up to MAX_INSTANCES instances in one query.

    `since` is before the start of each instance; `newest` is the last minute with a report.
    """
    ids = sorted(instance_ids)[:MAX_INSTANCES]
    if not ids:
        return {}
    rows = Instance.objects.filter(project_id=project_id, pk__in=ids)
    columns = (
        "gpu",
        "host",
        "node",
        "torch",
        "agent",
        "rank",
        "world_size",
        "job",
        "identity",
        "components",
    )
    identities, answered, shaped, showed = fetch_rows_together(
        rows.values_list("pk", *columns),
        _query_answers(project_id, ids, since),
        _query_shapes(project_id, ids, newest),
        _query_findings(ids),
    )
    found = {id: _list_identity_traits(*known) for id, *known in identities}
    _kernels_drop(found)
    _caches_add(found, answered)
    _shapes_add(found, shaped)
    _findings_add(found, showed)
    return found


def _list_identity_traits(
    gpu: str,
    host: str,
    node: str,
    torch: str,
    agent: str,
    rank: int,
    size: int,
    job: str,
    identity: Any,
    components: Any,
) -> Traits:
    traits = {"gpu": gpu, "host": host, "node": node, "torch": torch, "agent": agent}
    if size > 1:
        traits |= {"rank": str(rank), "world size": str(size), "job": job}
    for key in IDENTITY_TRAITS:
        value = identity.get(key) if isinstance(identity, Mapping) else None
        if value:
            traits[key.replace("_", " ")] = str(value)[:_MAX_CHARS]
    for key, value in components.items() if isinstance(components, Mapping) else ():
        traits.setdefault(str(key)[:_MAX_CHARS], str(value)[:_MAX_CHARS])
    return {key: value for key, value in traits.items() if value}


def _kernels_drop(found: dict[int, Traits]) -> None:
    """Remove kernels that some instances have not chosen. An instance without the shape has not
    chosen another kernel."""
    kernels = {key for traits in found.values() for key in traits if key.startswith(KERNEL)}
    for key in kernels:
        if not all(key in traits for traits in found.values()):
            for traits in found.values():
                traits.pop(key, None)


def _query_answers(project_id: int, ids: list[int], since: datetime) -> QuerySet[Any, Any]:
    since = max(since, clock.now() - timedelta(days=35))
    rows = CompileEvent.objects.filter(
        project_id=project_id, day__gte=_day(since), instance_id__in=ids
    ).values("instance_id")
    counted = rows.annotate(
        hits=Count("number", filter=HIT), misses=Count("number", filter=MISS)
    ).order_by()
    answered: QuerySet[Any, Any] = counted.values_list("instance_id", "hits", "misses")
    return answered


def _caches_add(found: dict[int, Traits], answered: Rows) -> None:
    """Add whether the compile caches served the start."""
    for instance, hits, misses in answered:
        if instance in found and (hits or misses):
            found[instance]["compile caches"] = "served" if hits >= misses else "mostly missed"


def _query_shapes(project_id: int, ids: list[int], newest: int) -> QuerySet[Any, Any]:
    span = Span(newest - SHAPE_MINUTES + 1, newest + 1)
    rows = RegionMinute.objects.filter(
        filter_days([span]),
        project_id=project_id,
        instance_id__in=ids,
        minute__gte=span.first,
        minute__lt=span.last,
    )
    bucket = Subquery(Series.objects.filter(pk=OuterRef("series_id")).values("bucket"))
    shaped: QuerySet[Any, Any] = (
        rows.values("instance_id")
        .annotate(bucket=bucket, n=Cast(Sum("calls"), BigIntegerField()))
        .order_by()
    ).values_list("instance_id", "bucket", "n")
    return shaped


def _shapes_add(found: dict[int, Traits], shaped: Rows) -> None:
    """Add the most frequent shape bucket of recent calls."""
    counts: dict[int, Counter[str]] = {}
    for instance, name, calls in shaped:
        if name and instance in found:
            counts.setdefault(instance, Counter())[name] += calls
    for instance, by_bucket in counts.items():
        found[instance]["shapes"] = (
            f"mostly {max(sorted(by_bucket), key=lambda name: by_bucket[name])}"
        )


def _query_findings(ids: list[int]) -> QuerySet[Any, Any]:
    rows = FindingInstance.objects.filter(instance_id__in=ids).order_by(
        "-finding__last_seen_at", "pk"
    )
    return rows.values_list(
        "finding__last_seen_at", "pk", "instance_id", "finding__kind", "finding__text"
    )[: MAX_INSTANCES * MOST_FINDINGS]


def _findings_add(found: dict[int, Traits], showed: Rows) -> None:
    """Add findings to the instances with an occurrence, up to MOST_FINDINGS of the newest."""
    seen: dict[str, list[int]] = {}
    for _, _, instance, kind, text in sorted(showed, key=lambda row: (-row[0].timestamp(), row[1])):
        seen.setdefault(
            f"{kind.replace('_', ' ')}: {' '.join(text.split())[:_MAX_CHARS]}", []
        ).append(instance)
    for name, instances in list(seen.items())[:MOST_FINDINGS]:
        for instance in instances:
            if instance in found:
                found[instance][name] = "seen"


def _day(at: datetime) -> int:
    return int(at.timestamp() // 86400)
