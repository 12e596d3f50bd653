"""Adds rows up per version and bin; what no row spoke about stays absent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from compilewatch.wire.sketch import Sketch

from dashboard.fleet.figures.rows import CallRow, ProcessRow
from dashboard.fleet.figures.window import Window
from dashboard.fleet.fold.sketches import merged_by

Clock = Literal["gpu", "wall"]
ENOUGH_GPU_SAMPLES = 20


@dataclass(slots=True)
class Calls:
    """Calls of one version in one bin, or over a whole window."""

    calls: int = 0
    errors: int = 0
    told: int = 0
    """Calls of which it is known whether they failed."""
    eager: int = 0
    known: int = 0
    items: float | None = None
    latency_count: int = 0
    latency_sum: float = 0.0
    sketch: Sketch = field(default_factory=Sketch)

    def add(self, row: CallRow) -> None:
        """Adds the counts of a row; sketches are merged all at once."""
        self.calls += row.calls
        if row.errors is not None:
            self.errors += row.errors
            self.told += row.calls
        self.eager += row.eager
        self.known += row.known
        if row.items is not None:
            self.items = (self.items or 0.0) + row.items
        self.latency_count += row.latency_count
        self.latency_sum += row.latency_sum

    def merge(self, other: Calls) -> None:
        """Adds another tally."""
        self.calls += other.calls
        self.errors += other.errors
        self.told += other.told
        self.eager += other.eager
        self.known += other.known
        if other.items is not None:
            self.items = (self.items or 0.0) + other.items
        self.latency_count += other.latency_count
        self.latency_sum += other.latency_sum
        self.sketch.merge(other.sketch)


@dataclass(slots=True)
class Processes:
    """What the processes of one version did in one bin, or over a whole window."""

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
        """The most instances that reported in one minute; a minute has one row per GPU type."""
        return max(self.per_minute.values(), default=0)

    def add(self, row: ProcessRow) -> None:
        """Adds a row; gauges keep the highest instance."""
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


CallGrid = dict[int, dict[int, Calls]]
ProcessGrid = dict[int, dict[int, Processes]]


def clock_shared(rows: Iterable[CallRow]) -> Clock:
    """GPU time if every version was sampled often enough on the GPU, else wall time: one chart never mixes the two."""
    samples: dict[int, int] = {}
    spans: dict[int, set[int]] = {}
    for row in rows:
        if row.calls:
            samples[row.version_id] = samples.get(row.version_id, 0) + row.gpu_count
            spans.setdefault(row.version_id, set()).add(row.minute)
    enough = [samples[version] >= ENOUGH_GPU_SAMPLES * len(minutes) for version, minutes in spans.items()]
    return "gpu" if enough and all(enough) else "wall"


def calls_binned(rows: Iterable[CallRow], window: Window, clock: Clock) -> CallGrid:
    """version -> bin -> calls; a bin without a row is not there. Sketches are of the clock that the charts show."""
    grid: CallGrid = {}
    packed: list[tuple[tuple[int, int], bytes | None]] = []
    for row in rows:
        place = window.bin_of(row.minute)
        if place is not None and row.calls:
            bins = grid.setdefault(row.version_id, {})
            if place not in bins:
                bins[place] = Calls()
            bins[place].add(row)
            packed.append(((row.version_id, place), row.gpu if clock == "gpu" else row.latency))
    for (version, place), sketch in merged_by(packed).items():
        grid[version][place].sketch = sketch
    return grid


def calls_summed(rows: Sequence[CallRow], clock: Clock) -> Calls:
    """All rows as one."""
    total = Calls()
    for row in rows:
        total.add(row)
    total.sketch = merged_by(("all", row.gpu if clock == "gpu" else row.latency) for row in rows).get("all", Sketch())
    return total


def processes_binned(rows: Iterable[ProcessRow], window: Window) -> ProcessGrid:
    """version -> bin -> processes; a bin without a window that covers it is not there."""
    grid: ProcessGrid = {}
    for row in rows:
        place = window.bin_of(row.minute)
        if place is not None and row.instances:
            bins = grid.setdefault(row.version_id, {})
            if place not in bins:
                bins[place] = Processes()
            bins[place].add(row)
    return grid


def calls_total(bins: dict[int, Calls], first: int = 0) -> Calls:
    """All bins from `first` on as one."""
    total = Calls()
    for place, calls in bins.items():
        if place >= first:
            total.merge(calls)
    return total


def _larger(known: int | None, seen: int | None) -> int | None:
    return seen if known is None else known if seen is None else max(known, seen)
