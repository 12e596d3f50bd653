"""Memory: the memory and GPU utilisation of versions, as the highest instance in a time span."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import Max, Q, QuerySet, Sum

from dashboard.fleet.models import VersionProcessHour, VersionProcessMinute
from dashboard.fleet.selectors.versions.version_series import (
    Span,
    filter_days,
    group_spans,
    make_slot_filter,
)

_LARGEST = (
    "gpu_allocated",
    "gpu_peak",
    "gpu_reserved",
    "gpu_graph_pool",
    "gpu_utilisation",
    "host_rss",
    "workers_rss",
    "host_rss_slope",
)


class MemoryData(NamedTuple):
    """Values in bytes, bytes per hour, and a share; None if not reported."""

    gpu_allocated: int | None
    gpu_peak: int | None
    gpu_reserved: int | None
    gpu_graph_pool: int | None
    gpu_utilisation: float | None
    host_rss: int | None
    workers_rss: int | None
    host_rss_slope: float | None
    ooms: int


def query_memory(
    *, project_id: int, environment: str, spans: Mapping[int, Span], hourly: bool
) -> QuerySet[Any, Any] | None:
    """Return the query for `parse_memory`, each version over its own span; None without spans."""
    if not spans:
        return None
    table: type[VersionProcessHour] | type[VersionProcessMinute] = (
        VersionProcessHour if hourly else VersionProcessMinute
    )
    wanted = Q()
    for span, version_ids in group_spans(spans).items():
        wanted |= Q(version_id__in=version_ids, **make_slot_filter(span, hourly))
    rows = table.objects.filter(
        wanted, filter_days(spans.values()), project_id=project_id, environment=environment
    )
    columns: tuple[Any, ...] = ("version_id", *(Max(name) for name in _LARGEST), Sum("ooms"))
    largest: QuerySet[Any, Any] = rows.values("version_id").order_by().values_list(*columns)
    return largest


def parse_memory(rows: Iterable[tuple[Any, ...]]) -> dict[int, MemoryData]:
    """Return the memory by version."""
    return {
        version_id: MemoryData._make((*largest, int(ooms or 0)))
        for version_id, *largest, ooms in rows
    }
