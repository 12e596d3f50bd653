"""Version metrics: how each metric is computed from totals, and its unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from dashboard.fleet.metrics.aggregate import CallTotals, ProcessTotals
from dashboard.fleet.metrics.first_bucket import QuantileBound, find_quantile_bound
from dashboard.vocabulary.metrics import METRICS

MetricKind = Literal["duration", "share", "size", "rate", "count"]
MetricReader = Callable[[CallTotals | None, ProcessTotals | None], float | None]


@dataclass(frozen=True)
class Metric:
    """One metric of a version in a bin.

    `read` returns None if the value is unknown. `worse` is the direction of a regression.
    """

    key: str
    title: str
    unit: str
    kind: MetricKind
    read: MetricReader
    worse: Literal["up", "down"] = "up"
    share: float | None = None
    """Share of calls below the quantile; None for other metrics."""

    def below(self, calls: CallTotals | None) -> QuantileBound | None:
        """Return the bound of a quantile in an engine's first bucket; None otherwise."""
        return (
            find_quantile_bound(calls.sketch, self.share)
            if calls and self.share is not None
            else None
        )


def _quantile(key: str, q: float) -> Metric:
    return Metric(
        key,
        key,
        "",
        "duration",
        lambda calls, _: calls.sketch.quantile(q) if calls else None,
        share=q,
    )


def _traffic(calls: CallTotals | None, processes: ProcessTotals | None) -> float | None:
    return calls.calls / processes.covered if calls and processes and processes.covered else None


def _items(calls: CallTotals | None, _: ProcessTotals | None) -> float | None:
    if calls and calls.items is not None and calls.wall:
        return calls.items / calls.wall
    if (
        not calls
        or calls.items is None
        or not (calls.latency_sum or (calls.callers and calls.stalled_seconds))
    ):
        return None
    if calls.callers:
        return calls.items / calls.seconds
    return calls.items / (calls.latency_sum / calls.latency_count * calls.calls)


def _eager(calls: CallTotals | None, _: ProcessTotals | None) -> float | None:
    # Agents sample a part of the calls. Without samples the share is unknown, not zero.
    return calls.eager / calls.known if calls and calls.known else None


def _errors(calls: CallTotals | None, _: ProcessTotals | None) -> float | None:
    return calls.errors / calls.told if calls and calls.told else None


def _stalled(calls: CallTotals | None, _: ProcessTotals | None) -> float | None:
    return calls.stalled / calls.reporting if calls and calls.reporting else None


def _stalled_time(calls: CallTotals | None, _: ProcessTotals | None) -> float | None:
    # If an older agent reports some of the calls, the total call time excludes their stalls.
    known = calls is not None and 0 < calls.calls == calls.reporting
    return calls.stalled_seconds / calls.seconds if calls and known and calls.seconds else None


def _recompiles(_: CallTotals | None, processes: ProcessTotals | None) -> float | None:
    if not processes or processes.recompiles is None or not processes.covered:
        return None
    return processes.recompiles * 3600 / processes.covered


def _compile_seconds(_: CallTotals | None, processes: ProcessTotals | None) -> float | None:
    if not processes or processes.compile_seconds is None or not processes.instances:
        return None
    return processes.compile_seconds / processes.instances


def _cache_hit(_: CallTotals | None, processes: ProcessTotals | None) -> float | None:
    seconds = processes.hit_seconds + processes.miss_seconds if processes else 0.0
    return processes.hit_seconds / seconds if processes and seconds else None


P50 = _quantile("p50", 0.5)
P95 = _quantile("p95", 0.95)
P99 = _quantile("p99", 0.99)
TRAFFIC = Metric(
    "traffic", METRICS["traffic"].title, "calls/s per instance", "rate", _traffic, "down"
)
THROUGHPUT = Metric(
    "throughput", METRICS["throughput"].title, "items/s of call time", "rate", _items, "down"
)
ENGINE_THROUGHPUT = replace(THROUGHPUT, unit="items/s of wall time, per engine")
"""Unit of engines that are scraped from outside. An engine produces several items at once, so the
sum of request times does not measure its speed."""
EAGER = Metric("eager", METRICS["eager"].title, "% of calls", "share", _eager)
RECOMPILES = Metric(
    "recompiles", METRICS["recompiles"].title, "per hour and instance", "count", _recompiles
)
ERRORS = Metric("errors", METRICS["errors"].title, "% of calls", "share", _errors)
STALLED = Metric(
    "stalled", METRICS["stalled"].title, "% of calls, waiting for a compilation", "share", _stalled
)
STALLED_TIME = Metric(
    "stalled_time", METRICS["stalled_time"].title, "% of call time", "share", _stalled_time
)
COMPILE = Metric(
    "compile", METRICS["compile_time"].title, "s per instance", "count", _compile_seconds
)
CACHE = Metric(
    "cache",
    METRICS["cache_hit_rate"].title,
    "% of compile seconds",
    "share",
    _cache_hit,
    "down",
)
COLD_START = Metric(
    "cold_start", METRICS["cold_start"].title, "s to first steady call", "count", lambda *_: None
)
GPU_MEMORY = Metric(
    "gpu_memory",
    METRICS["gpu_memory"].title,
    "highest instance",
    "size",
    lambda _, p: p.gpu_peak if p else None,
)
HOST_MEMORY = Metric(
    "host_memory",
    METRICS["host_memory"].title,
    "highest instance",
    "size",
    lambda _, p: p.host_rss if p else None,
)

TRENDS = (
    P50,
    P95,
    P99,
    THROUGHPUT,
    EAGER,
    STALLED,
    STALLED_TIME,
    RECOMPILES,
    ERRORS,
    COMPILE,
    COLD_START,
    CACHE,
    GPU_MEMORY,
    HOST_MEMORY,
)
