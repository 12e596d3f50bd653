"""Metric names: the names and units of version metrics in the API."""

from __future__ import annotations

from dashboard.fleet.metrics import version_metrics
from dashboard.fleet.metrics.aggregate import CallTotals, ProcessTotals
from dashboard.fleet.metrics.version_metrics import Metric

METRICS_BY_NAME: dict[str, tuple[Metric, str]] = {
    "p50_seconds": (version_metrics.P50, "seconds"),
    "p95_seconds": (version_metrics.P95, "seconds"),
    "p99_seconds": (version_metrics.P99, "seconds"),
    "throughput_items_per_second": (version_metrics.THROUGHPUT, "items per second of call time"),
    "calls_per_second_per_instance": (version_metrics.TRAFFIC, "calls per second and instance"),
    "eager_share": (version_metrics.EAGER, "share of sampled calls, 1 is all"),
    "stalled_share": (
        version_metrics.STALLED,
        "share of calls that waited for a compilation after warm-up, 1 is all",
    ),
    "stalled_time_share": (
        version_metrics.STALLED_TIME,
        "share of call time that such calls took, 1 is all",
    ),
    "recompiles_per_hour_per_instance": (
        version_metrics.RECOMPILES,
        "recompiles per hour and instance",
    ),
    "error_share": (version_metrics.ERRORS, "share of calls, 1 is all"),
    "compile_seconds_per_instance": (version_metrics.COMPILE, "seconds per instance"),
    "cache_hit_share": (version_metrics.CACHE, "share of compile seconds, 1 is all"),
    "gpu_memory_bytes": (version_metrics.GPU_MEMORY, "bytes, highest instance"),
    "host_memory_bytes": (version_metrics.HOST_MEMORY, "bytes, highest instance"),
}


def list_metrics(
    calls: CallTotals | None, processes: ProcessTotals | None
) -> dict[str, float | None]:
    """Return every metric by name; None if unknown.

    For a quantile in an engine's first bucket, the upper bound and the mean replace the value.
    """
    found = {name: metric.read(calls, processes) for name, (metric, _) in METRICS_BY_NAME.items()}
    bounds = {name: metric.below(calls) for name, (metric, _) in METRICS_BY_NAME.items()}
    for name, one in bounds.items():
        if one is not None:
            found |= {bound_name(name): one.bound, "mean_seconds": one.mean}
    return found


def bound_name(name: str) -> str:
    """Return the name of a quantile's bound: `p50_below_seconds` for `p50_seconds`."""
    return name.replace("_seconds", "_below_seconds")
