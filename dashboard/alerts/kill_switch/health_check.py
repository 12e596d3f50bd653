"""Kill-switch health check: compares p95, memory and errors of the affected instances with the
values before the kill switch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from compilewatch.wire.sketch import Sketch

from dashboard.common import clock
from dashboard.fleet.models import ProcessMinute, RegionMinute, Series
from dashboard.vocabulary.numbers import significant

SAMPLE_MINUTES = 5
MAX_P95_RATIOS = {"freeze": 1.25, "eager": 4.0}
"""Maximum ratio of p95 to its value before; higher for eager, which is expected to be slower."""
MAX_MEMORY_RATIO = 1.25
MAX_ERROR_SHARE_INCREASE = 0.01
"""Maximum increase of the share of failed calls."""
MIN_CALLS = 20


def measure_instances(
    *,
    project_id: int,
    version_id: int,
    environment: str,
    instances: Collection[int],
    first: int,
    last: int,
) -> dict[str, Any]:
    """Calls, errors, p95 in seconds and maximum memory in bytes, from minute `first` (included) to
    minute `last` (excluded)."""
    series = Series.objects.filter(
        version_id=version_id, environment=environment, outermost=True
    ).values_list("pk", flat=True)
    span = {
        "project_id": project_id,
        "day__gte": first // 1440,
        "day__lte": last // 1440,
        "minute__gte": first,
        "minute__lt": last,
    }
    rows = RegionMinute.objects.filter(
        **span, series_id__in=list(series), instance_id__in=instances
    )
    calls = errors = 0
    latency = Sketch()
    for row_calls, row_errors, packed in rows.values_list("calls", "errors", "latency"):
        calls, errors = calls + row_calls, errors + row_errors
        if packed is not None:
            latency.merge(Sketch.unpack(bytes(packed)))
    held = ProcessMinute.objects.filter(**span, instance_id__in=instances).values_list(
        "gpu_allocated", "host_rss"
    )
    sizes = [host if gpu is None else gpu for gpu, host in held]
    largest = max((size for size in sizes if size is not None), default=None)
    p95 = latency.quantile(0.95) if latency.count >= MIN_CALLS else None
    return {"calls": calls, "errors": errors, "p95": p95, "memory": largest}


def measure_recent(
    *,
    project_id: int,
    version_id: int,
    environment: str,
    instances: Collection[int],
    minutes: int = SAMPLE_MINUTES,
) -> dict[str, Any]:
    """Does the same for the last `minutes` whole minutes."""
    now = clock.minute_of(clock.unix())
    return measure_instances(
        project_id=project_id,
        version_id=version_id,
        environment=environment,
        instances=instances,
        first=now - minutes,
        last=now,
    )


def find_degradation(verb: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    """The reason to revert, or an empty string if the values are healthy."""
    if before.get("p95") and now["p95"] and now["p95"] > before["p95"] * MAX_P95_RATIOS[verb]:
        return (
            f"p95 rose to {significant(now['p95'] / before['p95'], 2)} times its earlier value "
            f"({significant(before['p95'] * 1e3)} ms)"
        )
    if (
        before.get("memory")
        and now["memory"]
        and now["memory"] > before["memory"] * MAX_MEMORY_RATIO
    ):
        times = significant(now["memory"] / before["memory"], 2)
        return (
            f"memory rose to {times} times its earlier value "
            f"({significant(before['memory'] / 2**30)} GiB)"
        )
    if (
        before.get("calls")
        and now["calls"] >= MIN_CALLS
        and now["errors"] / now["calls"]
        > before["errors"] / before["calls"] + MAX_ERROR_SHARE_INCREASE
    ):
        return (
            f"{now['errors'] / now['calls']:.2%} of calls failed, "
            f"{before['errors'] / before['calls']:.2%} before the kill switch"
        )
    return ""
