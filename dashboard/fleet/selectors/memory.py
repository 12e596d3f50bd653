"""What the processes of versions held of memory, and how busy their GPUs were: the highest instance over a span of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.db.models import Max, Q, Sum

from dashboard.fleet.models import VersionProcessHour, VersionProcessMinute
from dashboard.fleet.selectors.trends import Span, spans_days, spans_grouped, spans_slots

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


class MemoryFacts(NamedTuple):
    """Bytes, bytes per hour and a share; None where no agent could see it."""

    gpu_allocated: int | None
    gpu_peak: int | None
    gpu_reserved: int | None
    gpu_graph_pool: int | None
    gpu_utilisation: float | None
    host_rss: int | None
    workers_rss: int | None
    host_rss_slope: float | None
    ooms: int


def version_memory(*, project_id: int, environment: str, spans: Mapping[int, Span], hourly: bool) -> dict[int, MemoryFacts]:
    """By version, each over its own span; one query."""
    if not spans:
        return {}
    table: type[VersionProcessHour] | type[VersionProcessMinute] = VersionProcessHour if hourly else VersionProcessMinute
    wanted = Q()
    for span, version_ids in spans_grouped(spans).items():
        wanted |= Q(version_id__in=version_ids, **spans_slots(span, hourly))
    rows = table.objects.filter(wanted, spans_days(spans.values()), project_id=project_id, environment=environment)
    largest = {f"most_{name}": Max(name) for name in _LARGEST}
    found = rows.values("version_id").annotate(**largest, all_ooms=Sum("ooms")).order_by()
    return {row["version_id"]: MemoryFacts(**{name: row[f"most_{name}"] for name in _LARGEST}, ooms=row["all_ooms"] or 0) for row in found}
