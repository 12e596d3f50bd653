"""Compile cost of a project: sums of hourly rows and of compilations, a fixed number of queries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN, NOTHING_DIFFERS
from django.db.models import BigIntegerField, F, Q, QuerySet, Sum
from django.db.models.functions import Cast, Coalesce

from dashboard.common.raw_queries import fetch_rows
from dashboard.fleet.metrics.compile_cost import (
    CallDay,
    CompileHours,
    MissSeconds,
    ModelCost,
    add_costs,
)
from dashboard.fleet.models import (
    CompileEvent,
    Instance,
    ModelVersion,
    Series,
    VersionHour,
    VersionProcessHour,
)
from dashboard.fleet.selectors.compilations.cache_outcomes import MISS
from dashboard.fleet.selectors.instances.cold_starts import count_gpus
from dashboard.fleet.selectors.versions.compiled_share import EAGER_RUNTIME
from dashboard.fleet.selectors.versions.version_series import EAGER_COLUMNS


def read_compile_costs(
    *, project_id: int, first_day: int, last_day: int, environment: str = ""
) -> dict[int, ModelCost]:
    """The costs by model from `first_day` to `last_day`, both included; six queries."""
    place = {"environment": environment} if environment else {}
    days = {"project_id": project_id, "day__gte": first_day, "day__lte": last_day}
    compiled = [
        CompileHours._make(row)
        for row in fetch_rows(
            VersionProcessHour.objects.filter(**days, **place, compile_seconds__gt=0)
            .values("version_id", "gpu_type", "day")
            .order_by()
            .annotate(spent=Sum("compile_seconds"))
            .values_list("version_id", "gpu_type", "day", "spent")
        )
    ]
    gpu_of, gpus_of = _read_gpus(project_id, first_day)
    return add_costs(
        model_of=dict(
            ModelVersion.objects.filter(project_id=project_id).values_list("pk", "model_id")
        ),
        gpus_of=gpus_of,
        compiled=compiled,
        missed=_read_misses(days, place, gpu_of),
        calls=_read_calls(project_id, days, place, first_day),
    )


def _read_gpus(
    project_id: int, first_day: int
) -> tuple[dict[int, str], dict[tuple[int, str], int]]:
    """GPU type by instance, and GPUs per process by version and GPU type."""
    rows = Instance.objects.filter(project_id=project_id, last_minute__gte=first_day * 1440)
    columns = ("pk", "version_id", "gpu", "world_size", "identity__gpu_count")
    gpu_of: dict[int, str] = {}
    gpus_of: dict[tuple[int, str], int] = {}
    for pk, version, gpu, world_size, count in rows.values_list(*columns):
        gpu_of[pk] = gpu
        held = count_gpus(gpu, world_size, {"gpu_count": count})
        gpus_of[version, gpu] = max(held, gpus_of.get((version, gpu), 0))
    return gpu_of, gpus_of


def _read_misses(
    days: dict[str, int], place: dict[str, str], gpu_of: dict[int, str]
) -> Iterable[MissSeconds]:
    """Compilations that missed a cache although an earlier start had compiled the graph: the agent
    found a difference to an earlier run."""
    rows = (
        CompileEvent.objects.filter(MISS, **days, **place)
        .exclude(miss__in=("", NO_EARLIER_RUN, NOTHING_DIFFERS))
        .values("version_id", "instance_id", "day")
        .order_by()
        .annotate(spent=Coalesce(Sum("total"), 0.0))
        .values_list("version_id", "instance_id", "day", "spent")
    )
    for version, instance, day, seconds in fetch_rows(rows):
        if instance in gpu_of:
            yield MissSeconds(version, gpu_of[instance], day, seconds)


def _read_calls(
    project_id: int, days: dict[str, int], place: dict[str, str], first_day: int
) -> list[CallDay]:
    """Calls by series and day, of models with calls that ran eager."""
    rows = Series.objects.filter(
        project_id=project_id, outermost=True, last_minute__gte=first_day * 1440, **place
    )
    columns = ("pk", "version_id", "stratum__gpu", "stratum__runtime", "region", "bucket")
    series = {pk: facts for pk, *facts in rows.values_list(*columns)}
    found = []
    for pk, day, calls, observed, eager, seconds, timed in fetch_rows(_sum_calls(days)):
        if pk in series:
            version, gpu, runtime, region, bucket = series[pk]
            found.append(
                CallDay(
                    version,
                    gpu,
                    (region, bucket),
                    runtime == EAGER_RUNTIME,
                    day,
                    calls,
                    observed,
                    eager,
                    seconds or 0.0,
                    timed or 0,
                )
            )
    return found


def _sum_calls(days: dict[str, int]) -> QuerySet[VersionHour, Any]:
    eager = sum((F(name) for name in EAGER_COLUMNS[1:]), F(EAGER_COLUMNS[0]))
    whole = Q(**dict.fromkeys(EAGER_COLUMNS, 0))
    columns = {
        "n": Cast(Sum("calls"), BigIntegerField()),
        "n_observed": Cast(Sum(F("compiled") + F("partial") + eager), BigIntegerField()),
        "n_eager": Cast(Sum(eager), BigIntegerField()),
        "seconds": Sum("latency_sum", filter=whole),
        "n_timed": Cast(Sum("latency_count", filter=whole), BigIntegerField()),
    }
    rows = VersionHour.objects.filter(**days).values("series_id", "day").order_by()
    sums: QuerySet[VersionHour, Any] = rows.annotate(**columns).values_list(
        "series_id", "day", *columns
    )
    return sums
