"""Cache miss costs: the most expensive causes of cache misses in a project."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Sum

from dashboard.fleet.models import CompileEvent, Instance
from dashboard.fleet.selectors.compilations.cache_outcomes import CACHE_LOOKUP
from dashboard.fleet.selectors.instances.cold_starts import count_gpus

DAYS = 7
MAX_ROWS = 900
"""Maximum number of processes and causes in the sum, the most expensive first."""


@dataclass
class MissCost:
    """Cost of one miss cause, and its models, the most expensive first."""

    cause: str
    seconds: float = 0.0
    gpu_seconds: float = 0.0
    compilations: int = 0
    models: list[str] = field(default_factory=list)


def read_miss_costs(*, project_id: int, now: datetime) -> list[MissCost]:
    """Return the costs of the last DAYS days, the highest first; two queries."""
    since = now - timedelta(days=DAYS)
    day = int(since.timestamp() // 86400)
    rows = CompileEvent.objects.filter(
        CACHE_LOOKUP, project_id=project_id, day__gte=day, at__gte=since
    ).exclude(miss="")
    lost = (
        rows.values("miss", "instance_id")
        .annotate(n=Count("number"), seconds=Sum("total"))
        .order_by("-seconds", "miss", "instance_id")
    )
    found = list(lost.values_list("miss", "instance_id", "n", "seconds")[:MAX_ROWS])
    columns = ("pk", "gpu", "world_size", "identity", "model__name")
    known = {
        row[0]: row[1:]
        for row in Instance.objects.filter(pk__in={row[1] for row in found}).values_list(*columns)
    }
    costs: dict[str, MissCost] = {}
    for miss, instance, compilations, seconds in found:
        if instance not in known:
            continue
        gpu, world_size, identity, model = known[instance]
        cost = costs.setdefault(miss, MissCost(miss))
        cost.seconds += seconds or 0.0
        cost.gpu_seconds += (seconds or 0.0) * count_gpus(gpu, world_size, identity)
        cost.compilations += compilations
        cost.models += [] if model in cost.models else [model]
    return sorted(costs.values(), key=lambda one: (-one.seconds, one.cause))
