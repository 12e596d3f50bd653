"""Version series: calls and processes of versions over a time span, from the tables per version."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import F, FloatField, Q, QuerySet, Sum
from django.db.models.functions import NullIf

from dashboard.common.raw_queries import Rows, fetch_rows
from dashboard.fleet.fold.counters import COUNTED_EAGER_CAUSES
from dashboard.fleet.models import (
    RegionMinute,
    Series,
    VersionHour,
    VersionMinute,
    VersionProcessHour,
    VersionProcessMinute,
)
from dashboard.ingest.scrapers.to_report import MODE as UNTOLD
from dashboard.ingest.scrapers.to_report import MODES as OUTSIDE

EAGER_COLUMNS = tuple(f"eager_{cause}" for cause in COUNTED_EAGER_CAUSES)

STALLED = ("stalled_count", "stalled_sum", "stalled", "warmup")


class Span(NamedTuple):
    """Span in minutes since 1970, `first` inclusive, `last` exclusive."""

    first: int
    last: int


@dataclass(frozen=True)
class SeriesInfo:
    """Properties of a series.

    `stratum` is text for display. `outside` is True for an engine that is scraped without an agent.
    `untold` is True if the engine does not report failed calls.
    """

    version_id: int
    stratum_id: int
    stratum: str
    region: str
    bucket: str
    outside: bool
    untold: bool


class CallPoint(NamedTuple):
    """Calls of one version, stratum and bucket in one minute or hour; `minute` is its first.

    `errors` and `stalled_count` are None if not reported.
    """

    version_id: int
    stratum_id: int
    bucket: str
    minute: int
    calls: int
    errors: int | None
    items: float | None
    eager: int
    known: int
    latency_count: int
    latency_sum: float
    gpu_count: int
    latency: bytes | None
    gpu: bytes | None
    stalled_count: int | None = None
    stalled_sum: float | None = None
    stalled: bytes | None = None
    warmup: bytes | None = None
    wall: float = 0.0
    """Wall seconds in which a scraped engine produced its items; such an engine produces several
    items at once."""


class ProcessPoint(NamedTuple):
    """Processes of one version on one GPU type in one minute or hour; None if not reported."""

    version_id: int
    minute: int
    instances: int
    covered: float
    recompiles: int | None
    compile_seconds: float | None
    hit_seconds: float
    miss_seconds: float
    gpu_peak: int | None
    host_rss: int | None


class InstancePoint(NamedTuple):
    """Latency of one instance in one series and minute."""

    instance_id: int
    series_id: int
    latency: bytes | memoryview[int] | None
    gpu: bytes | memoryview[int] | None
    stalled_count: int | None = None
    stalled: bytes | memoryview[int] | None = None


def read_outermost_series(
    *, project_id: int, version_ids: Collection[int], environment: str
) -> dict[int, SeriesInfo]:
    """Return the series of versions that count callers' calls.

    Regions inside other regions are excluded, because their calls would count twice.
    """
    rows = query_outermost_series(
        project_id=project_id, version_ids=version_ids, environment=environment
    )
    return parse_outermost_series(fetch_rows(rows))


def query_outermost_series(
    *, project_id: int, version_ids: Collection[int], environment: str
) -> QuerySet[Any, Any]:
    """Query the series that `parse_outermost_series` reads."""
    rows = Series.objects.filter(
        project_id=project_id, version_id__in=version_ids, environment=environment, outermost=True
    )
    stratum = ("gpu", "mode", "runtime", "world_size")
    return rows.order_by("pk").values_list(
        *("pk", "version_id", "stratum_id", "region", "bucket"),
        *(f"stratum__{name}" for name in stratum),
    )


def parse_outermost_series(rows: Rows) -> dict[int, SeriesInfo]:
    """Return the series by id, in order."""
    return {
        id: SeriesInfo(
            version_id,
            stratum_id,
            format_stratum(gpu, mode, runtime, world_size),
            region,
            bucket,
            mode in OUTSIDE,
            mode == UNTOLD,
        )
        for id, version_id, stratum_id, region, bucket, gpu, mode, runtime, world_size in sorted(
            rows, key=itemgetter(0)
        )
    }


def list_scraped_versions(series: Iterable[SeriesInfo]) -> set[int]:
    """Return the versions whose series are all scraped, so that no agent reports their
    compilations."""
    told = list(series)
    return {facts.version_id for facts in told} - {
        facts.version_id for facts in told if not facts.outside
    }


def stratum_name(series: Series) -> str:
    """Return the properties of the series' stratum for display."""
    stratum = series.stratum
    return format_stratum(stratum.gpu, stratum.mode, stratum.runtime, stratum.world_size)


def format_stratum(gpu: str, mode: str, runtime: str, world_size: int) -> str:
    """Return GPU, mode, runtime and world size for display; empty parts are omitted."""
    ranks = f"{world_size} ranks" if world_size > 1 else ""
    return ", ".join(part for part in (gpu or "no GPU", mode, runtime, ranks) if part)


def read_region_seconds(
    *, project_id: int, series: Mapping[int, SeriesInfo], span: Span, hourly: bool
) -> dict[str, float]:
    """Return the seconds of calls per region, the busiest first, as on the Fleet page.

    A single region needs no query and has 0 seconds.
    """
    regions = {facts.region: 0.0 for facts in series.values()}
    if len(regions) > 1:
        rows = _calls(project_id, {span: list(series)}, hourly)
        # Agents time a part of very short calls. Their mean extrapolates to all calls of the
        # region.
        seconds = Sum(
            F("latency_sum") * F("calls") / NullIf(F("latency_count"), 0), output_field=FloatField()
        )
        for series_id, took in rows.values_list("series_id").annotate(took=seconds).order_by():
            regions[series[series_id].region] += took or 0.0
    return {
        name: regions[name]
        for name in sorted(regions, key=lambda name: (regions[name], name), reverse=True)
    }


def query_calls(
    *, project_id: int, series: Mapping[int, SeriesInfo], spans: Mapping[int, Span], hourly: bool
) -> QuerySet[Any, Any] | None:
    """Return the query for `parse_call_points`; None without rows to read."""
    found = query_series_rows(project_id=project_id, series=series, spans=spans, hourly=hourly)
    if found is None:
        return None
    eager = sum((F(name) for name in EAGER_COLUMNS[1:]), F(EAGER_COLUMNS[0]))
    rows: QuerySet[Any, Any] = found.annotate(
        eager=eager, known=F("compiled") + F("partial") + eager
    )
    columns = (
        "calls",
        "errors",
        "items",
        "eager",
        "known",
        "latency_count",
        "latency_sum",
        "gpu_count",
        "latency",
        "gpu",
        *STALLED,
        "covered",
    )
    return rows.values_list("series_id", "hour" if hourly else "minute", *columns)


def query_series_rows(
    *, project_id: int, series: Mapping[int, SeriesInfo], spans: Mapping[int, Span], hourly: bool
) -> QuerySet[Any, Any] | None:
    """Return the rows of series, each over the span of its version; None without rows to read."""
    wanted = group_spans(
        {id: spans[facts.version_id] for id, facts in series.items() if facts.version_id in spans}
    )
    found: QuerySet[Any, Any] | None = _calls(project_id, wanted, hourly) if wanted else None
    return found


def parse_call_points(
    rows: Iterable[tuple[Any, ...]], series: Mapping[int, SeriesInfo], *, hourly: bool
) -> list[CallPoint]:
    """Build call points from rows and the properties of their series."""
    own = {id: (facts.version_id, facts.stratum_id, facts.bucket) for id, facts in series.items()}
    untold = {id for id, facts in series.items() if facts.untold}
    outside = {id for id, facts in series.items() if facts.outside}
    step = 60 if hourly else 1
    return [
        CallPoint._make(
            own[id]
            + (slot * step, calls, None if id in untold else errors)
            + tuple(rest)
            + (covered if id in outside else 0.0,)
        )
        for id, slot, calls, errors, *rest, covered in rows
    ]


def read_process_points(
    *,
    project_id: int,
    environment: str,
    spans: Mapping[int, Span],
    hourly: bool,
    outside: Collection[int] = (),
) -> list[ProcessPoint]:
    """Return process points of all versions, each over its own span; one query.

    For the scraped versions `outside`, only a compile time from a start-up log is known.
    """
    rows = query_processes(
        project_id=project_id, environment=environment, spans=spans, hourly=hourly
    )
    return (
        parse_process_points(fetch_rows(rows), outside, hourly=hourly) if rows is not None else []
    )


def query_processes(
    *, project_id: int, environment: str, spans: Mapping[int, Span], hourly: bool
) -> QuerySet[Any, Any] | None:
    """Return the query for `parse_process_points`; None without rows to read."""
    if not spans:
        return None
    table: type[VersionProcessHour] | type[VersionProcessMinute] = (
        VersionProcessHour if hourly else VersionProcessMinute
    )
    wanted = Q()
    for span, version_ids in group_spans(spans).items():
        wanted |= Q(version_id__in=version_ids, **make_slot_filter(span, hourly))
    rows = table.objects.filter(
        wanted, filter_days(spans.values()), project_id=project_id, environment=environment
    )
    columns = (
        "instances",
        "covered",
        "recompiles",
        "compile_seconds",
        "hit_seconds",
        "miss_seconds",
        "gpu_peak",
        "host_rss",
    )
    return rows.values_list("version_id", "hour" if hourly else "minute", *columns)


def parse_process_points(
    rows: Iterable[tuple[Any, ...]], outside: Collection[int], *, hourly: bool
) -> list[ProcessPoint]:
    """Build process points from rows, with hours as minutes."""
    points = [
        ProcessPoint(version_id, slot * 60 if hourly else slot, *values)
        for version_id, slot, *values in rows
    ]
    return [_blank_unknown(point) if point.version_id in outside else point for point in points]


def _blank_unknown(point: ProcessPoint) -> ProcessPoint:
    return point._replace(recompiles=None, compile_seconds=point.compile_seconds or None)


def read_instance_points(
    *, project_id: int, series: Collection[int], span: Span
) -> list[InstancePoint]:
    """Return the latency per instance.

    Only minute tables hold instances, so the span should be short.
    """
    rows = RegionMinute.objects.filter(
        filter_days([span]),
        project_id=project_id,
        series_id__in=series,
        **make_slot_filter(span, hourly=False),
    )
    return [
        InstancePoint(*row)
        for row in rows.values_list(
            "instance_id", "series_id", "latency", "gpu", "stalled_count", "stalled"
        ).iterator(chunk_size=2000)
    ]


def _calls(
    project_id: int, wanted: Mapping[Span, list[int]], hourly: bool
) -> QuerySet[VersionHour] | QuerySet[VersionMinute]:
    table: type[VersionHour] | type[VersionMinute] = VersionHour if hourly else VersionMinute
    which = Q()
    for span, series_ids in wanted.items():
        which |= Q(series_id__in=series_ids, **make_slot_filter(span, hourly))
    return table.objects.filter(which, filter_days(wanted), project_id=project_id)


def group_spans(spans: Mapping[int, Span]) -> dict[Span, list[int]]:
    """Group ids by equal spans.

    Most versions of a page share a span, and one condition costs the same for one id as for many.
    """
    found: dict[Span, list[int]] = {}
    for id, span in spans.items():
        found.setdefault(span, []).append(id)
    return found


def make_slot_filter(span: Span, hourly: bool) -> dict[str, Any]:
    """Return a span as a filter.

    The filter lists single days because keys have the day before the series or version. With a
    range of days, the database would read all rows of the project on these days.
    """
    days = {"day__in": range(span.first // 1440, (span.last - 1) // 1440 + 1)}
    if hourly:
        return days | {"hour__gte": span.first // 60, "hour__lt": -(-span.last // 60)}
    return days | {"minute__gte": span.first, "minute__lt": span.last}


def filter_days(spans: Iterable[Span]) -> Q:
    """Return a filter of the days of all spans, which selects the partitions."""
    found = list(spans)
    return Q(
        day__gte=min(span.first for span in found) // 1440,
        day__lte=max(span.last for span in found) // 1440,
    )
