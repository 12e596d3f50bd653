"""Fleet page: live versions with speed, compiled share and starts; a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, F, FloatField, Max, Q, QuerySet, Sum
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, NullIf, Round

from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.fold.cached_quantiles import EMPTY_SKETCH, CachedSketch, merge_packed_groups
from dashboard.fleet.models import (
    Deployment,
    Instance,
    VersionHour,
    VersionMinute,
    VersionProcessHour,
    VersionProcessMinute,
    WatchedModel,
)
from dashboard.fleet.selectors.instances.recent_instances import (
    RecentInstance,
    list_recent_instances,
)
from dashboard.fleet.selectors.versions.fleet_deployments import read_models_and_deployments
from dashboard.fleet.selectors.versions.observed_calls import sum_observed_calls
from dashboard.projects.models import Project

RECENT_MINUTES = 15


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


def read_fleet(*, project: Project, window: BinnedRange, environment: str = "") -> FleetData:
    """Read the fleet of a project in three queries."""
    models, deployed = read_models_and_deployments(project=project, since=window.start)
    inside = [
        one for one in deployed if one.ended_minute is None or one.last_minute >= window.start
    ]
    deployments = [one for one in inside if environment in ("", one.environment)]
    versions: dict[int, VersionData] = defaultdict(VersionData)
    series = _filter_series(project.pk, window, environment)
    calls, recent, processes = fetch_rows_together(
        _call_bins(series, project.pk, window),
        _query_recent_calls(series, project.pk, window.end),
        _processes(project.pk, window, environment),
    )
    of_model = {one.version_id: one.model_id for one in deployed}
    regions = _add_calls(versions, calls, of_model)
    _add_recent(versions, recent, regions, of_model)
    _add_processes(versions, processes)
    instances = list_recent_instances(project_id=project.pk, environment=environment)
    for instance in instances:
        if instance.cold_start is not None:
            versions[instance.version_id].cold_starts.append(instance.cold_start)
    return FleetData(
        models, deployments, versions, instances, sorted({one.environment for one in deployed})
    )


def list_environments(*, project_id: int) -> list[str]:
    """Return all environments with a deployment, past or present."""
    return list(
        Deployment.objects.filter(project_id=project_id)
        .order_by("environment")
        .values_list("environment", flat=True)
        .distinct()
    )


def read_last_report_at(*, project_id: int) -> datetime | None:
    """Return the time of the newest folded report of any instance."""
    newest: datetime | None = Instance.objects.filter(project_id=project_id).aggregate(
        at=Max("last_seen_at")
    )["at"]
    return newest


def _filter_series(project_id: int, window: BinnedRange, environment: str) -> dict[str, Any]:
    """Return the condition on rows of calls: callers' calls of series that reported in the
    range."""
    wanted = {
        "series__project_id": project_id,
        "series__outermost": True,
        "series__last_minute__gte": window.start,
    }
    return wanted | ({"series__environment": environment} if environment else {})


class CallBin(NamedTuple):
    """Calls of one version in one region and bin; quantiles are weighted by calls, None without a
    sketch."""

    version_id: int
    region: str
    slot: int
    calls: int
    seconds: float | None
    compiled: int
    looked: int
    stalled: int
    reporting: int
    timed: int
    """Calls with a reported duration. If fewer calls have a quantile, the other quantiles lie in an
    engine's first bucket."""
    weight: int | None
    p50: float | None
    p99: float | None
    caller_weight: int | None
    caller_p50: float | None
    caller_p99: float | None


def _add_calls(
    versions: dict[int, VersionData], found: Iterable[tuple[Any, ...]], models: Mapping[int, int]
) -> dict[int, str]:
    """Add the bins of one region per version; return that region by version.

    The region is the busiest one of the model by call time, so that adjacent values cover the same
    region. A version without calls in that region has its own busiest region. Quantiles of a model
    use the waiting time of callers if every bin reports it, else steady calls.
    """
    rows = [CallBin._make(row) for row in found]
    busy: dict[tuple[int, str], float] = defaultdict(float)
    for row in rows:
        busy[row.version_id, row.region] += row.seconds or 0.0
    of = dict.fromkeys((row.version_id for row in rows), 0) | dict(models)
    top, several = _find_busiest_regions(busy, of)
    for version, region in top.items():
        versions[version].region, versions[version].one_region = region, of[version] not in several
    shown = [row for row in rows if top[row.version_id] == row.region]
    silent = {of[row.version_id] for row in shown if row.reporting < row.calls}
    for row in shown:
        _add_bin(versions[row.version_id], row, of[row.version_id] not in silent)
    return top


def _find_busiest_regions(
    busy: Mapping[tuple[int, str], float], of: Mapping[int, int]
) -> tuple[dict[int, str], set[int]]:
    """Return the region of each version, and the models with several regions.

    `of` is the model of each version.
    """
    by_model: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (version, region), seconds in busy.items():
        by_model[of[version]][region] += seconds
    first = {
        model: max(regions, key=lambda name: (regions[name], name))
        for model, regions in by_model.items()
    }
    own = {
        version: region
        for (version, region), _ in sorted(busy.items(), key=lambda item: (item[1], item[0][1]))
    }
    top = {
        version: first[of[version]] if (version, first[of[version]]) in busy else region
        for version, region in own.items()
    }
    return top, {model for model, regions in by_model.items() if len(regions) > 1}


def _call_bins(series: dict[str, Any], project_id: int, window: BinnedRange) -> QuerySet[Any, Any]:
    """Return the query of `CallBin` rows, added in the database over strata and shapes.

    A fleet has many more series than versions.
    """
    table: type[VersionMinute] | type[VersionHour] = VersionHour if window.hourly else VersionMinute
    unit, step = ("hour", 60) if window.hourly else ("minute", 1)
    slot = (F(unit) - window.start // step) / (window.bin // step)
    rows = (
        _filter_slots(table.objects.filter(project_id=project_id, **series), unit, step, window)
        # Text columns last: rows are sorted by these columns, and numbers compare faster.
        .values(version=F("series__version_id"), slot=slot, region=F("series__region"))
        .order_by()
        .annotate(
            n=_cast_bigint(Sum("calls")),
            # Agents time only a part of very short calls. Their mean extrapolates to all calls of
            # the region.
            seconds=Sum(
                F("latency_sum") * F("calls") / NullIf(F("latency_count"), 0),
                output_field=FloatField(),
            ),
            n_compiled=_cast_bigint(Sum("compiled")),
            n_looked=_cast_bigint(Round(Sum(sum_observed_calls()))),
            n_stalled=_cast_bigint(Coalesce(Sum("stalled_count"), 0)),
            n_reporting=_cast_bigint(
                Coalesce(Sum("calls", filter=Q(stalled_count__isnull=False)), 0)
            ),
            n_timed=_cast_bigint(Coalesce(Sum("calls", filter=Q(latency_count__gt=0)), 0)),
            weight=_cast_bigint(Sum("calls", filter=Q(p50__isnull=False))),
            p50_weighted=Sum(F("p50") * F("calls"), output_field=FloatField()),
            p99_weighted=Sum(F("p99") * F("calls"), output_field=FloatField()),
            caller_weight=_cast_bigint(Sum("calls", filter=Q(caller_p50__isnull=False))),
            caller_p50_weighted=Sum(F("caller_p50") * F("calls"), output_field=FloatField()),
            caller_p99_weighted=Sum(F("caller_p99") * F("calls"), output_field=FloatField()),
        )
    )
    columns = (
        *(
            "version",
            "region",
            "slot",
            "n",
            "seconds",
            "n_compiled",
            "n_looked",
            "n_stalled",
            "n_reporting",
        ),
        *(
            "n_timed",
            "weight",
            "p50_weighted",
            "p99_weighted",
            "caller_weight",
            "caller_p50_weighted",
            "caller_p99_weighted",
        ),
    )
    bins: QuerySet[Any, Any] = rows.values_list(*columns)
    return bins


def _cast_bigint(total: Combinable) -> Cast:
    """Cast a sum to an integer: PostgreSQL returns sums of big integers as decimals."""
    return Cast(total, BigIntegerField())


def _add_bin(facts: VersionData, row: CallBin, callers: bool) -> None:
    facts.calls += row.calls
    facts.compiled += row.compiled
    facts.looked += row.looked
    facts.stalled += row.stalled
    facts.reporting += row.reporting
    weight, p50, p99 = (
        (row.caller_weight, row.caller_p50, row.caller_p99)
        if callers
        else (row.weight, row.p50, row.p99)
    )
    if weight and weight >= row.timed:
        facts.points.setdefault(row.slot, SparklineBin()).add(
            row.calls, weight, p50 or 0.0, p99 or 0.0
        )


def _query_recent_calls(series: dict[str, Any], project_id: int, end: int) -> QuerySet[Any, Any]:
    """Return the query of the last minutes with sketches, for the exact values next to a
    sparkline."""
    since = end - RECENT_MINUTES
    rows = VersionMinute.objects.filter(
        project_id=project_id,
        day__gte=since // 1440,
        day__lte=end // 1440,
        day__in=range(since // 1440, end // 1440 + 1),
        minute__gt=since,
        minute__lte=end,
        **series,
    )
    return rows.values_list(
        "series__version_id", "series__region", "calls", "latency", "stalled_count", "stalled"
    )


def _add_recent(
    versions: dict[int, VersionData],
    rows: Iterable[tuple[Any, ...]],
    regions: dict[int, str],
    models: Mapping[int, int],
) -> None:
    packed: dict[int, list[bytes | None]] = defaultdict(list)
    shown = [row for row in rows if regions.get(row[0]) == row[1]]
    silent = {
        models.get(version)
        for version, _, calls, _, stalled_count, _ in shown
        if calls and stalled_count is None
    }
    for version, _, calls, sketch, _, stalled in shown:
        versions[version].recent_calls += calls
        packed[version] += [sketch] if models.get(version) in silent else [sketch, stalled]
    for version, merged in zip(packed, merge_packed_groups(packed.values()), strict=True):
        versions[version].recent = merged


def _processes(project_id: int, window: BinnedRange, environment: str) -> QuerySet[Any, Any]:
    """Return the query of processes in the range: seconds with and without a cache hit, and highest
    memory."""
    table: type[VersionProcessMinute] | type[VersionProcessHour] = (
        VersionProcessHour if window.hourly else VersionProcessMinute
    )
    unit, step = ("hour", 60) if window.hourly else ("minute", 1)
    rows = _filter_slots(table.objects.filter(project_id=project_id), unit, step, window)
    if environment:
        rows = rows.filter(environment=environment)
    columns = (
        "version_id",
        Sum("hit_seconds"),
        Sum("miss_seconds"),
        Max("gpu_peak"),
        Max("host_rss"),
    )
    sums: QuerySet[Any, Any] = rows.values("version_id").order_by().values_list(*columns)
    return sums


def _add_processes(versions: dict[int, VersionData], rows: Iterable[tuple[Any, ...]]) -> None:
    for version, hit, miss, gpu, host in rows:
        facts = versions[version]
        facts.hit_seconds, facts.miss_seconds, facts.gpu_peak, facts.host_rss = hit, miss, gpu, host


def _filter_slots(rows: QuerySet[Any], unit: str, step: int, window: BinnedRange) -> QuerySet[Any]:
    first, last = window.start // step, window.end // step
    days = range(window.start // 1440, window.end // 1440 + 1)
    # The range of days selects the partitions. The list of days lets the key find each series.
    return rows.filter(
        **{
            "day__gte": days[0],
            "day__lte": days[-1],
            "day__in": days,
            f"{unit}__gte": first,
            f"{unit}__lte": last,
        }
    )
