"""Counters: call and process counts of a time span.

Every field adds or keeps the larger value, so order and grouping of reports do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import TypeVar

from compilewatch.wire.sketch import Sketch

N = TypeVar("N", int, float, tuple[bool, float, str], tuple[float, int, str])

COUNTER_MAX = 1 << 50
"""Saturation limit of counters.

An hour of 10,000 processes with 10,000 calls per second each remains 3,000 times below the limit.
Each value is exact in a float and in a browser, and the sum of two values fits 64 bits.
"""

COUNTED_EAGER_CAUSES = ("limit", "stance", "skip", "disabled", "error", "no_graph")


@dataclass(slots=True)
class CallCounts:
    """Calls of one series in one time span."""

    calls: int = 0
    errors: int = 0
    items: float | None = None
    compiled: int = 0
    partial: int = 0
    eager: list[int] = field(default_factory=lambda: [0] * len(COUNTED_EAGER_CAUSES))
    unknown: int = 0
    sampled: int = 0
    covered: float = 0.0
    latency: Sketch | None = None
    gpu: Sketch | None = None
    warmup: Sketch | None = None
    stalled: Sketch | None = None
    """None if the agent does not report stalled calls; empty if none occurred."""

    def add(self, other: CallCounts) -> None:
        """Add other calls of the same series and time; `other` does not change."""
        self.calls += other.calls
        self.errors += other.errors
        self.compiled += other.compiled
        self.partial += other.partial
        self.unknown += other.unknown
        self.sampled += other.sampled
        self.covered += other.covered
        if other.items is not None:
            self.items = other.items + (self.items or 0.0)
        if any(other.eager):
            self.eager = [
                mine + theirs for mine, theirs in zip(self.eager, other.eager, strict=True)
            ]
        self.latency = merge_sketches(self.latency, other.latency)
        self.gpu = merge_sketches(self.gpu, other.gpu)
        self.warmup = merge_sketches(self.warmup, other.warmup)
        self.stalled = merge_sketches(self.stalled, other.stalled)

    def copy(self) -> CallCounts:
        """Return a copy that shares no mutable state."""
        return replace(
            self,
            eager=list(self.eager),
            latency=merge_sketches(None, self.latency),
            gpu=merge_sketches(None, self.gpu),
            warmup=merge_sketches(None, self.warmup),
            stalled=merge_sketches(None, self.stalled),
        )


def merge_sketches(mine: Sketch | None, other: Sketch | None) -> Sketch | None:
    """Merge `other` into `mine` in place and return the result; `other` does not change."""
    if other is None:
        return mine
    if mine is None:
        return other.copy()
    mine.merge(other)
    return mine


SUMMED_FIELDS = (
    "windows",
    "covered",
    "compiles",
    "recompiles",
    "compile_failures",
    "request_compiles",
    "compile_seconds",
    "saved_seconds",
    "cache_hits",
    "cache_misses",
    "cache_bypasses",
    "hit_seconds",
    "miss_seconds",
    "graph_breaks",
    "fallbacks",
    "cudagraph_skips",
    "ooms",
    "recordings",
    "recording_seconds",
)
"""Fields of ProcessCounts that add; the other fields keep the largest value."""


@dataclass(slots=True)
class ProcessCounts:
    """Counts of one process in one time span that belong to no region; None if not observed."""

    windows: int = 0
    covered: float = 0.0
    compiles: int = 0
    recompiles: int = 0
    compile_failures: int = 0
    request_compiles: int = 0
    compile_seconds: float = 0.0
    saved_seconds: float = 0.0
    cache_hits: int = 0
    cache_misses: int = 0
    cache_bypasses: int = 0
    hit_seconds: float = 0.0
    miss_seconds: float = 0.0
    graph_breaks: int = 0
    fallbacks: int = 0
    cudagraph_skips: int = 0
    ooms: int = 0
    recordings: int = 0
    recording_seconds: float = 0.0
    gpu_allocated: int | None = None
    gpu_peak: int | None = None
    gpu_reserved: int | None = None
    gpu_graph_pool: int | None = None
    gpu_utilisation: float | None = None
    host_rss: int | None = None
    host_rss_slope: float | None = None
    workers_rss: int | None = None
    degraded_frames: int | None = None
    compiling_for: float | None = None

    def add(self, other: ProcessCounts) -> None:
        """Add another window of the same time span."""
        for name in SUMMED_FIELDS:
            if value := getattr(other, name):
                setattr(self, name, getattr(self, name) + value)
        for name in LARGEST_FIELDS:
            value = getattr(other, name)
            if value is not None:
                setattr(self, name, larger(getattr(self, name), value))

    def copy(self) -> ProcessCounts:
        """Return a copy that shares no mutable state."""
        return ProcessCounts(*_values_of(self))


_values_of = attrgetter(*(item.name for item in fields(ProcessCounts)))
LARGEST_FIELDS = tuple(
    item.name for item in fields(ProcessCounts) if item.name not in SUMMED_FIELDS
)


def larger(mine: N | None, other: N | None) -> N | None:
    """Return the larger value; either value may be None."""
    if mine is None or (other is not None and other > mine):
        return other
    return mine


def smaller(mine: N | None, other: N | None) -> N | None:
    """Return the smaller value; either value may be None."""
    if mine is None or (other is not None and other < mine):
        return other
    return mine
