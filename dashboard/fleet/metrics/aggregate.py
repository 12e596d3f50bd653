"""Aggregation: adds rows per version and time bin. A value that no row reports remains absent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from operator import attrgetter
from typing import Literal

from dashboard.fleet.fold.cached_quantiles import (
    EMPTY_SKETCH,
    CachedSketch,
    merge_cached_sketches,
    merge_packed_groups,
)
from dashboard.fleet.fold.sketch_columns import SketchColumns
from dashboard.fleet.metrics.row_types import CallRow, ProcessRow
from dashboard.fleet.metrics.time_bins import TimeBins

Clock = Literal["gpu", "wall"]
MIN_GPU_SAMPLES_PER_MINUTE = 20


@dataclass(slots=True)
class CallTotals:
    """Calls of one version in one bin, or over a whole window."""

    calls: int = 0
    errors: int = 0
    told: int = 0
    """Calls whose success is reported."""
    eager: int = 0
    known: int = 0
    items: float | None = None
    latency_count: int = 0
    latency_sum: float = 0.0
    wall: float = 0.0
    """Wall seconds of scraped engines while they produced their items; 0 without such engines."""
    stalled: int = 0
    stalled_seconds: float = 0.0
    reporting: int = 0
    """Calls of agents that report stalls."""
    sketch: CachedSketch = EMPTY_SKETCH
    warmup: int = 0
    """Calls that compiled or waited for a compilation before warm-up ended; excluded from
    quantiles."""
    callers: bool = False
    """Whether the sketch includes stalled calls."""

    @property
    def seconds(self) -> float:
        """Total seconds of all calls.

        Steady calls are sampled and extrapolated; stalled calls are all timed.
        """
        steady = (
            self.latency_sum / self.latency_count * (self.calls - self.stalled)
            if self.latency_count
            else 0.0
        )
        return steady + self.stalled_seconds

    def merge(self, other: CallTotals) -> None:
        """Add the counts of another total; its sketch is not added."""
        self.calls += other.calls
        self.errors += other.errors
        self.told += other.told
        self.eager += other.eager
        self.known += other.known
        if other.items is not None:
            self.items = (self.items or 0.0) + other.items
        self.latency_count += other.latency_count
        self.latency_sum += other.latency_sum
        self.wall += other.wall
        self.stalled += other.stalled
        self.stalled_seconds += other.stalled_seconds
        self.reporting += other.reporting
        self.warmup += other.warmup
        self.callers = other.callers


@dataclass(slots=True)
class ProcessTotals:
    """Processes of one version in one bin, or over a whole window."""

    covered: float = 0.0
    recompiles: int | None = None
    compile_seconds: float | None = None
    hit_seconds: float = 0.0
    miss_seconds: float = 0.0
    gpu_peak: int | None = None
    host_rss: int | None = None
    per_minute: dict[int, int] = field(default_factory=dict)

    @property
    def instances(self) -> int:
        """Largest number of instances that reported in one minute; a minute has one row per GPU
        type."""
        return max(self.per_minute.values(), default=0)

    def add(self, row: ProcessRow) -> None:
        """Add a row; gauges keep the value of the highest instance."""
        self.covered += row.covered
        if row.recompiles is not None:
            self.recompiles = (self.recompiles or 0) + row.recompiles
        if row.compile_seconds is not None:
            self.compile_seconds = (self.compile_seconds or 0.0) + row.compile_seconds
        self.hit_seconds += row.hit_seconds
        self.miss_seconds += row.miss_seconds
        self.gpu_peak = _larger(self.gpu_peak, row.gpu_peak)
        self.host_rss = _larger(self.host_rss, row.host_rss)
        self.per_minute[row.minute] = self.per_minute.get(row.minute, 0) + row.instances

    def merge(self, other: ProcessTotals) -> None:
        """Add another total."""
        self.covered += other.covered
        if other.recompiles is not None:
            self.recompiles = (self.recompiles or 0) + other.recompiles
        if other.compile_seconds is not None:
            self.compile_seconds = (self.compile_seconds or 0.0) + other.compile_seconds
        self.hit_seconds += other.hit_seconds
        self.miss_seconds += other.miss_seconds
        self.gpu_peak = _larger(self.gpu_peak, other.gpu_peak)
        self.host_rss = _larger(self.host_rss, other.host_rss)
        for minute, instances in other.per_minute.items():
            self.per_minute[minute] = self.per_minute.get(minute, 0) + instances


_COLUMNS = attrgetter(
    "calls",
    "errors",
    "eager",
    "known",
    "items",
    "latency_count",
    "latency_sum",
    "stalled_count",
    "stalled_sum",
    "wall",
)
CallGrid = dict[int, dict[int, CallTotals]]
ProcessGrid = dict[int, dict[int, ProcessTotals]]


def choose_clock(rows: Iterable[CallRow]) -> Clock:
    """Return "gpu" if every version has enough GPU samples, else "wall".

    One chart never mixes the two clocks.
    """
    samples: dict[int, int] = {}
    spans: dict[int, set[int]] = {}
    for row in rows:
        if row.calls:
            samples[row.version_id] = samples.get(row.version_id, 0) + row.gpu_count
            spans.setdefault(row.version_id, set()).add(row.minute)
    enough = [
        samples[version] >= MIN_GPU_SAMPLES_PER_MINUTE * len(minutes)
        for version, minutes in spans.items()
    ]
    return "gpu" if enough and all(enough) else "wall"


def all_report_stalls(rows: Iterable[CallRow]) -> bool:
    """Return whether every row with calls reports stalls.

    If so, quantiles include the waiting time of callers; otherwise quantiles cover steady calls on
    all sides.
    """
    return all(row.stalled_count is not None for row in rows if row.calls)


def bin_calls(
    rows: Iterable[CallRow], window: TimeBins, clock: Clock, callers: bool = False
) -> CallGrid:
    """Return calls by version and bin; a bin without rows is absent.

    Sketches use the clock of the charts.
    """
    inside: dict[tuple[int, int], list[CallRow]] = defaultdict(list)
    for row in rows:
        place = window.bin_of(row.minute)
        if place is not None and row.calls:
            inside[row.version_id, place].append(row)
    grid: CallGrid = defaultdict(dict)
    groups = list(inside.values())
    found = zip(
        inside.items(), _merge_sketches(groups, clock, callers), _count_warmups(groups), strict=True
    )
    for ((version, place), mine), sketch, warmup in found:
        grid[version][place] = _sum_rows(mine, sketch, warmup, callers and clock == "wall")
    return dict(grid)


def sum_calls(rows: Sequence[CallRow], clock: Clock, callers: bool = False) -> CallTotals:
    """Return the total of all rows."""
    return _sum_rows(
        rows,
        _merge_sketches([rows], clock, callers)[0],
        _count_warmups([rows])[0],
        callers and clock == "wall",
    )


def _merge_sketches(
    groups: Iterable[Sequence[CallRow]], clock: Clock, callers: bool
) -> list[CachedSketch]:
    """Merge the durations of each group's rows on the displayed clock."""
    packed = attrgetter("gpu" if clock == "gpu" else "latency")
    if clock == "gpu" or not callers:
        return merge_packed_groups(map(packed, rows) for rows in groups)
    return merge_packed_groups(
        chain(map(packed, rows), map(attrgetter("stalled"), rows)) for rows in groups
    )


def _count_warmups(groups: Iterable[Sequence[CallRow]]) -> list[int]:
    """Return the number of warm-up calls per group."""
    return [
        row.answer(_list_counts)
        for row in merge_packed_groups(map(attrgetter("warmup"), rows) for rows in groups)
    ]


def _list_counts(sketches: SketchColumns) -> list[int]:
    return [int(count) for count in sketches.count]


def _sum_rows(
    rows: Sequence[CallRow], sketch: CachedSketch, warmup: int, callers: bool
) -> CallTotals:
    """Return the sums of the rows.

    Summing by column takes half the time of a loop over rows; a day has thousands of rows.
    """
    if not rows:
        return CallTotals(sketch=sketch, callers=callers)
    calls, errors, eager, known, items, count, seconds, stalled, stalled_sum, wall = zip(
        *map(_COLUMNS, rows), strict=True
    )
    told = [some is not None for some in errors]
    some_items = [some for some in items if some is not None]
    return CallTotals(
        calls=sum(calls),
        errors=sum(compress(errors, told)),
        told=sum(compress(calls, told)),
        eager=sum(eager),
        known=sum(known),
        items=sum(some_items) if some_items else None,
        latency_count=sum(count),
        latency_sum=sum(seconds),
        wall=sum(wall),
        stalled=sum(filter(None, stalled)),
        stalled_seconds=sum(filter(None, stalled_sum)),
        reporting=sum(compress(calls, [some is not None for some in stalled])),
        sketch=sketch,
        warmup=warmup,
        callers=callers,
    )


def bin_processes(rows: Iterable[ProcessRow], window: TimeBins) -> ProcessGrid:
    """Return processes by version and bin; a bin without a covering window is absent."""
    grid: ProcessGrid = {}
    for row in rows:
        place = window.bin_of(row.minute)
        if place is not None and row.instances:
            bins = grid.setdefault(row.version_id, {})
            if place not in bins:
                bins[place] = ProcessTotals()
            bins[place].add(row)
    return grid


def sum_call_bins(grid: CallGrid) -> dict[int, CallTotals]:
    """Return the total of all bins per version, from the result of `bin_calls`."""
    found = {version: CallTotals() for version in grid}
    for version, bins in grid.items():
        for calls in bins.values():
            found[version].merge(calls)
    rows = [calls.sketch for bins in grid.values() for calls in bins.values()]
    owners = [number for number, bins in enumerate(grid.values()) for _ in bins]
    for total, sketch in zip(
        found.values(), merge_cached_sketches(rows, owners, len(grid)), strict=True
    ):
        total.sketch = sketch
    return found


def sum_process_bins(grid: ProcessGrid) -> dict[int, ProcessTotals]:
    """Return the total of all bins per version."""
    found = {version: ProcessTotals() for version in grid}
    for version, bins in grid.items():
        for processes in bins.values():
            found[version].merge(processes)
    return found


def _larger(known: int | None, seen: int | None) -> int | None:
    return seen if known is None else known if seen is None else max(known, seen)
