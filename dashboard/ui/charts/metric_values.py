"""Metrics of a version as texts: values with units and differences from the baseline."""

from __future__ import annotations

from dashboard.fleet.metrics.first_bucket import QuantileBound
from dashboard.fleet.metrics.version_metrics import (
    CACHE,
    COLD_START,
    COMPILE,
    EAGER,
    ENGINE_THROUGHPUT,
    ERRORS,
    GPU_MEMORY,
    HOST_MEMORY,
    P50,
    P95,
    P99,
    RECOMPILES,
    THROUGHPUT,
    TRAFFIC,
    TRENDS,
    Metric,
)
from dashboard.vocabulary import numbers

__all__ = [
    "CACHE",
    "COLD_START",
    "COMPILE",
    "EAGER",
    "ENGINE_THROUGHPUT",
    "ERRORS",
    "GPU_MEMORY",
    "HOST_MEMORY",
    "P50",
    "P95",
    "P99",
    "RECOMPILES",
    "THROUGHPUT",
    "TRAFFIC",
    "TRENDS",
    "Metric",
    "format_difference",
    "format_metric",
]


def format_metric(metric: Metric, value: float | None, known: QuantileBound | None = None) -> str:
    """The value with its unit; without a value, the known bound and mean, else a dash."""
    if value is None:
        return numbers.below(known.bound, known.mean) if known else "–"
    if metric.kind == "duration":
        return numbers.duration(value)
    if metric.kind == "share":
        return numbers.percent(value)
    if metric.kind == "size":
        return numbers.size(value)
    if metric.kind == "rate":
        return f"{numbers.number(value)}{numbers.SPACE}/s"
    if metric is RECOMPILES:
        return f"{numbers.number(value)}{numbers.SPACE}/h"
    return numbers.duration(value) if value else f"0{numbers.SPACE}s"


def format_difference(metric: Metric, value: float | None, base: float | None) -> str:
    """The difference from the baseline, informative and not evaluated; empty if a value is
    missing."""
    if value is None or base is None:
        return ""
    if metric.kind == "share":
        return numbers.points(value - base)
    if metric is RECOMPILES:
        return numbers.difference(value, base, "per hour") if value != base else "no change"
    if value == base:
        return "no change"
    return numbers.change(value / base - 1) if base else "from 0"
