"""Fleet data: the values of the Fleet page by version, and its time range."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from dashboard.fleet.fold.cached_quantiles import EMPTY_SKETCH, CachedSketch
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.selectors.instances.recent_instances import RecentInstance


@dataclass(frozen=True)
class BinnedRange:
    """Time range of a page in minutes since 1970, divided into bins for sparklines."""

    start: int
    end: int
    bin: int

    @property
    def hourly(self) -> bool:
        """Whether the range reads hourly tables, as ranges over a day do."""
        return self.bin % 60 == 0

    @property
    def bins(self) -> int:
        """Number of bins, including the unfinished one."""
        return (self.end - self.start) // self.bin + 1


@dataclass
class SparklineBin:
    """One bin of one version: calls, and call-weighted means of the quantiles of its minutes, in
    seconds.

    The means are estimates for the shape of a sparkline, never for a displayed number.
    """

    calls: int = 0
    weight: float = 0.0
    p50: float = 0.0
    p99: float = 0.0

    def add(self, calls: int, weight: float, p50: float, p99: float) -> None:
        self.calls += calls
        self.weight += weight
        self.p50 += p50
        self.p99 += p99


@dataclass
class VersionData:
    """One version within the range, all instances together. Calls and latency are those of
    `region`."""

    region: str = ""
    one_region: bool = True
    """Whether all versions of its model reported this region only."""
    calls: int = 0
    recent_calls: int = 0
    compiled: int = 0
    looked: int = 0
    """Sampled calls, and calls that stalled."""
    stalled: int = 0
    reporting: int = 0
    """Calls of agents that report stalls."""
    points: dict[int, SparklineBin] = field(default_factory=dict)
    recent: CachedSketch = EMPTY_SKETCH
    hit_seconds: float = 0.0
    miss_seconds: float = 0.0
    gpu_peak: int | None = None
    host_rss: int | None = None
    cold_starts: list[float] = field(default_factory=list)

    @property
    def compiled_share(self) -> float | None:
        """Share of compiled calls among observed calls. A stalled call waits, and does not count as
        served compiled."""
        return self.compiled / self.looked if self.looked else None

    @property
    def stalled_share(self) -> float | None:
        """Share of calls that waited for a compilation after warm-up."""
        return self.stalled / self.reporting if self.reporting else None

    @property
    def cache_hit(self) -> float | None:
        """Share of compile seconds that a cache served."""
        total = self.hit_seconds + self.miss_seconds
        return self.hit_seconds / total if total else None

    @property
    def peak(self) -> int | None:
        """Highest GPU memory in bytes; without a GPU the highest host memory."""
        return self.gpu_peak if self.gpu_peak is not None else self.host_rss

    @property
    def cold_start(self) -> float | None:
        """Median cold start of its instances in seconds."""
        return median(self.cold_starts) if self.cold_starts else None


@dataclass
class FleetData:
    """All fleet data of the page."""

    models: list[WatchedModel]
    deployments: list[Deployment]
    versions: dict[int, VersionData]
    instances: list[RecentInstance]
    environments: list[str]
    """All environments with a deployment, past or present."""
    model_of: dict[int, int]
    """Model by version."""
