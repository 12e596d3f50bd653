"""What may tell one instance from another: machine, libraries, configuration, compile caches, shapes, and the findings it showed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from compilewatch.wire.report import KERNEL
from django.db.models import Count, OuterRef, Q, Subquery, Sum

from dashboard.common import clock
from dashboard.fleet.models import CompileEvent, FindingInstance, Instance, RegionMinute, Series
from dashboard.fleet.selectors.trends import Span, spans_days

MOST = 400
MOST_FINDINGS = 60
SHAPE_MINUTES = 15
OF_IDENTITY = ("gpu_count", "gpu_capability", "driver", "cuda", "triton", "python")
_SHOWN = 100

Traits = dict[str, str]


def instance_traits(*, project_id: int, instance_ids: Collection[int]) -> dict[int, Traits]:
    """The traits of at most so many instances; four queries."""
    ids = sorted(instance_ids)[:MOST]
    if not ids:
        return {}
    rows = Instance.objects.filter(project_id=project_id, pk__in=ids)
    columns = ("gpu", "host", "torch", "agent", "rank", "world_size", "job", "identity", "components")
    told = list(rows.values_list("pk", "started_at", "last_minute", *columns))
    found = {id: _of_identity(*known) for id, _, _, *known in told}
    if not found:
        return {}
    _kernels_drop(found)
    _caches_add(project_id, found, since=min(row[1] for row in told))
    _shapes_add(project_id, found, newest=max(row[2] for row in told))
    _findings_add(found)
    return found


def _of_identity(gpu: str, host: str, torch: str, agent: str, rank: int, size: int, job: str, identity: Any, components: Any) -> Traits:
    told = {"gpu": gpu, "host": host, "torch": torch, "agent": agent}
    if size > 1:
        told |= {"rank": str(rank), "world size": str(size), "job": job}
    for key in OF_IDENTITY:
        value = identity.get(key) if isinstance(identity, Mapping) else None
        if value:
            told[key.replace("_", " ")] = str(value)[:_SHOWN]
    for key, value in components.items() if isinstance(components, Mapping) else ():
        told.setdefault(str(key)[:_SHOWN], str(value)[:_SHOWN])
    return {key: value for key, value in told.items() if value}


def _kernels_drop(found: dict[int, Traits]) -> None:
    """Kernels that not all of them have chosen: one that has not met a shape yet chose nothing else."""
    kernels = {key for traits in found.values() for key in traits if key.startswith(KERNEL)}
    for key in kernels:
        if not all(key in traits for traits in found.values()):
            for traits in found.values():
                traits.pop(key, None)


def _caches_add(project_id: int, found: dict[int, Traits], *, since: datetime) -> None:
    """Whether the compile caches served its start."""
    since = max(since, clock.now() - timedelta(days=35))
    rows = CompileEvent.objects.filter(project_id=project_id, day__gte=_day(since), instance_id__in=list(found)).values("instance_id")
    hit, miss = Q(cache_fx="hit") | Q(cache_aot="hit"), Q(cache_fx="miss") | Q(cache_aot="miss")
    for row in rows.annotate(hits=Count("number", filter=hit), misses=Count("number", filter=miss)).order_by():
        if row["hits"] or row["misses"]:
            warm = "served" if row["hits"] >= row["misses"] else "mostly missed"
            found[row["instance_id"]]["compile caches"] = warm


def _shapes_add(project_id: int, found: dict[int, Traits], *, newest: int) -> None:
    """The shape bucket that most of its calls had, of late."""
    span = Span(newest - SHAPE_MINUTES + 1, newest + 1)
    rows = RegionMinute.objects.filter(
        spans_days([span]), project_id=project_id, instance_id__in=list(found), minute__gte=span.first, minute__lt=span.last
    )
    bucket = Subquery(Series.objects.filter(pk=OuterRef("series_id")).values("bucket"))
    counts: dict[int, Counter[str]] = {}
    for instance, name, calls in rows.values_list("instance_id").annotate(bucket=bucket, n=Sum("calls")).order_by():
        if name:
            counts.setdefault(instance, Counter())[name] += calls
    for instance, by_bucket in counts.items():
        found[instance]["shapes"] = f"mostly {max(sorted(by_bucket), key=lambda name: by_bucket[name])}"


def _findings_add(found: dict[int, Traits]) -> None:
    """Findings that not every instance showed, as yes where one did."""
    rows = FindingInstance.objects.filter(instance_id__in=list(found)).select_related("finding").order_by("-finding__last_seen_at", "pk")
    seen: dict[str, list[int]] = {}
    for row in rows[: MOST * MOST_FINDINGS]:
        text = " ".join(row.finding.text.split())[:_SHOWN]
        seen.setdefault(f"{row.finding.kind.replace('_', ' ')}: {text}", []).append(row.instance_id)
    for name, instances in list(seen.items())[:MOST_FINDINGS]:
        for instance in instances:
            found[instance][name] = "seen"


def _day(at: datetime) -> int:
    return int(at.timestamp() // 86400)
