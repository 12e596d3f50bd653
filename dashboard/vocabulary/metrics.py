"""Metric table: key, names, unit and direction of every metric and confirmed fact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["latency", "level", "share", "rate", "growth", "fact"]
Direction = Literal["up", "down"]
WALL_TIME, GPU_TIME = "wall time", "GPU time"


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """One metric. `detail` follows the title if there is room; `phrase` names the metric inside a
    sentence; `predicate` follows a value of a share or rate.

    `direction` is the worse direction; `worse` and `better` are its adjectives.
    """

    key: str
    title: str
    detail: str = ""
    unit: str = ""
    kind: Kind = "level"
    phrase: str = ""
    predicate: str = ""
    direction: Direction = "up"
    worse: str = "higher"
    better: str = "lower"

    @property
    def name(self) -> str:
        """The title; GPU time includes its clock, because the plain title is that of wall time."""
        return f"{self.title}, {self.detail}" if self.detail == GPU_TIME else self.title

    @property
    def subject(self) -> str:
        """The phrase as the subject of a sentence: p50 call time, GPU time p50, throughput."""
        return f"{self.phrase} call time" if self.detail == WALL_TIME else self.phrase

    @property
    def share_of(self) -> str:
        """The whole of a share: calls, call time, compile seconds; empty for other metrics."""
        return self.detail.removeprefix("share of ") if self.kind == "share" else ""

    @property
    def factor_word(self) -> str:
        """The adjective after a factor: 22.8 times as long, 3 times as high."""
        return "long" if self.worse in ("slower", "longer") else "high"


def _latency(key: str, clock: str) -> MetricEntry:
    quantile = key.removeprefix("gpu_")
    phrase = f"GPU time {quantile}" if clock == GPU_TIME else quantile
    return MetricEntry(
        key, quantile, clock, "s", "latency", phrase, worse="slower", better="faster"
    )


def _share(key: str, title: str, detail: str, phrase: str, predicate: str) -> MetricEntry:
    return MetricEntry(key, title, detail, "share", "share", phrase, predicate)


def _start(key: str, title: str, detail: str) -> MetricEntry:
    return MetricEntry(
        key, title, detail, "s", phrase=title.lower(), worse="longer", better="shorter"
    )


def _fact(key: str, title: str) -> MetricEntry:
    return MetricEntry(key, title, kind="fact")


METRICS: dict[str, MetricEntry] = {
    entry.key: entry
    for entry in (
        _latency("p50", WALL_TIME),
        _latency("gpu_p50", GPU_TIME),
        _latency("p95", WALL_TIME),
        _latency("gpu_p95", GPU_TIME),
        _latency("p99", WALL_TIME),
        _latency("gpu_p99", GPU_TIME),
        MetricEntry(
            "throughput",
            "Throughput",
            "items/s",
            "items/s",
            phrase="throughput",
            direction="down",
            worse="lower",
            better="higher",
        ),
        _share(
            "eager",
            "Eager calls",
            "share of calls",
            "the share of eager calls",
            "of calls run eager",
        ),
        _share("errors", "Errors", "share of calls", "the share of failed calls", "of calls fail"),
        _share(
            "stalled",
            "Stalled calls",
            "share of calls",
            "the share of stalled calls",
            "of calls wait for a compilation",
        ),
        _share(
            "stalled_time",
            "Stalled time",
            "share of call time",
            "the share of stalled time",
            "of the time of calls is spent waiting for compilations",
        ),
        _share(
            "cache",
            "Cache misses",
            "share of compile seconds",
            "the share of cache misses",
            "of compile seconds were not in a cache",
        ),
        MetricEntry(
            "cache_hit_rate",
            "Cache hit rate",
            "by compile time",
            phrase="the cache hit rate",
            direction="down",
        ),
        MetricEntry(
            "traffic", "Traffic", "calls/s per instance", phrase="traffic", direction="down"
        ),
        MetricEntry(
            "recompiles",
            "Recompiles",
            "per hour and instance",
            "per hour",
            "rate",
            "recompiles",
            "recompiles per hour and instance",
        ),
        MetricEntry(
            "leak",
            "GPU memory growth",
            "per hour, median slope",
            "share per hour",
            "growth",
            "GPU memory growth",
            worse="worse",
            better="better",
        ),
        MetricEntry(
            "gpu_memory", "Peak GPU memory", "per instance", "bytes", phrase="peak GPU memory"
        ),
        MetricEntry("host_memory", "Host memory", "per instance", "bytes", phrase="host memory"),
        _start("compile_time", "Compile time", "per instance start"),
        _start("cold_start", "Cold start", "to first steady call"),
        _fact("parity", "Wrong result"),
        _fact("shadow_parity", "Wrong result"),
        _fact("non_finite", "NaN or infinite"),
        _fact("latched_eager", "Runs eager"),
        _fact("compiled_nothing", "Compiled nothing"),
        _fact("stuck_compiling", "Stuck"),
        _fact("out_of_memory", "Out of memory"),
        _fact("budget_burning", "Budget"),
        _fact("stalled_calls", "Stalled calls"),
        _fact("ranks_diverged", "Ranks"),
    )
}
ALIASES = {
    "gpu_peak": "gpu_memory",
    "memory": "gpu_memory",
    "compile_seconds": "compile_time",
    "cache_misses": "cache",
}
"""Current keys of evidence that earlier releases stored under other keys."""


def canonical_key(key: str) -> str:
    """The current key for a key of any release."""
    return ALIASES.get(key, key)


def find_metric(key: str) -> MetricEntry:
    """The entry of a key of any release; an unknown key is its own name."""
    key = canonical_key(key)
    return METRICS.get(key) or MetricEntry(
        key, key.replace("_", " "), phrase=key, worse="worse", better="better"
    )
