"""Judge minutes: minutes of a candidate and its baseline, as the judge reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from dashboard.fleet.fold.counters import COUNTED_EAGER_CAUSES
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import Deployment, RegionMinute, Series
from dashboard.fleet.selectors.judge_inputs.execution_modes import (
    ModeChanges,
    RegionPlacement,
    normalize_mode,
)
from dashboard.fleet.selectors.judge_inputs.independent_units import JudgedProcess, read_processes
from dashboard.fleet.watermark import closed_minute
from dashboard.ingest.scrapers.to_report import MODE as UNTOLD
from dashboard.ingest.scrapers.to_report import MODES as OUTSIDE
from dashboard.ingest.selectors import read_bucket_layouts
from dashboard.projects.selectors import for_project

__all__ = ["JudgedMinute", "closed_minute", "read_instance_minutes"]

Arm = Literal["baseline", "candidate"]


class _StoredMinute(NamedTuple):
    """Columns of a stored minute, without the counts of eager causes."""

    instance_id: int
    series_id: int
    minute: int
    calls: int
    errors: int
    items: float | None
    compiled: int
    partial: int
    unknown: int
    p50: float | None
    p99: float | None
    gpu_p50: float | None
    gpu_p99: float | None
    gpu_count: int
    latency_sum: float
    latency_count: int
    stalled_count: int | None
    stalled_sum: float | None
    caller_p50: float | None
    caller_p99: float | None
    covered: float


MINUTE_COLUMNS = (*_StoredMinute._fields, *(f"eager_{cause}" for cause in COUNTED_EAGER_CAUSES))
_EAGER_START = len(_StoredMinute._fields)


class JudgedMinute(NamedTuple):
    """One minute of one instance in one region and shape bucket.

    Durations are seconds, minutes count since 1970, and absent values are None. `unit` varies
    independently, see `independent_units`.
    """

    instance: str
    unit: str
    arm: Arm
    stratum: tuple[str, ...]
    region: str
    bucket: str
    minute: int
    first_minute: int
    calls: int
    errors: int
    compiled: int
    partial: int
    eager: int
    eager_by: dict[str, int]
    p50: float | None
    p99: float | None
    gpu_p50: float | None
    gpu_p99: float | None
    gpu_count: int
    outermost: bool
    unknown: int
    items: float | None
    latency_sum: float
    """Divisor of items in seconds: timed calls, or wall time of a scraped engine."""
    host: str
    stalled: int | None
    stalled_sum: float | None
    call_seconds: float | None
    """Seconds of steady and stalled calls, with untimed calls extrapolated; None if the agent does
    not report stalled calls."""
    caller_p50: float | None
    caller_p99: float | None
    bounds: tuple[float, ...] | None
    """Bounds of a scraped engine's buckets; empty if unknown, None for an agent."""


class SeriesKey(NamedTuple):
    """Place of a series' calls."""

    arm: Arm
    stratum: tuple[str, ...]
    region: str
    bucket: str
    outermost: bool
    mode: str
    bounds: tuple[float, ...] | None


def read_instance_minutes(
    *,
    deployment: Deployment,
    baseline: Deployment | None,
    from_minute: int,
    to_minute: int,
    changed: ModeChanges | None = None,
    units: Collection[str] | None = None,
) -> list[JudgedMinute]:
    """Return the minutes of both deployments, ordered by minute, instance and series.

    Minutes range from `from_minute` to `to_minute`, exclusive. Where the mode of a region differs
    (`changed`), both versions share a stratum named after the change. With `units`, only their
    processes are read.
    """
    found: list[JudgedMinute] = []
    sides: list[tuple[Arm, Deployment | None]] = [("candidate", deployment), ("baseline", baseline)]
    series = {
        arm: read_series(arm, [side.version_id], side.environment, changed or {})
        for arm, side in sides
        if side is not None
    }
    untold = find_modes_without_errors(series.values())
    for arm, side in sides:
        if side is not None:
            start, end = max(from_minute, side.started_minute), min(to_minute, side.last_minute + 1)
            found.extend(_arm_minutes(series[arm], side, start, end, untold, units))
    found.sort(key=lambda row: (row.minute, row.instance, row.stratum, row.region, row.bucket))
    return found


def find_modes_without_errors(
    series: Iterable[Mapping[int, SeriesKey]],
) -> Collection[str]:
    """Return the modes whose failure counts are ignored.

    A failure count of only one engine is not a difference between the engines.
    """
    blind = any(
        where.mode == UNTOLD and where.outermost for side in series for where in side.values()
    )
    return OUTSIDE if blind else ()


def _arm_minutes(
    series: Mapping[int, SeriesKey],
    side: Deployment,
    start: int,
    end: int,
    untold: Collection[str],
    units: Collection[str] | None,
) -> Iterable[JudgedMinute]:
    if start >= end:
        return
    rows = for_project(RegionMinute, side.project_id).filter(
        day__gte=start // 1440,
        day__lte=(end - 1) // 1440,
        series_id__in=series,
        minute__gte=start,
        minute__lt=end,
    )
    if units is not None:
        known = read_processes(side).items()
        rows = rows.filter(instance_id__in=[id for id, one in known if one.unit in units])
    values = list(rows.values_list(*MINUTE_COLUMNS))
    who = read_processes(side)
    for row in values:
        if row[0] in who:
            yield make_minute(row, who[row[0]], series[row[1]], untold)


def make_minute(
    values: Sequence[Any], process: JudgedProcess, where: SeriesKey, untold: Collection[str]
) -> JudgedMinute:
    """Return the minute of a row of MINUTE_COLUMNS."""
    row, eager = _StoredMinute._make(values[:_EAGER_START]), values[_EAGER_START:]
    return JudgedMinute(
        process.instance,
        process.unit,
        where.arm,
        where.stratum,
        where.region,
        where.bucket,
        row.minute,
        process.first_minute,
        row.calls,
        0 if where.mode in untold else row.errors,
        row.compiled,
        row.partial,
        sum(eager),
        {cause: n for cause, n in zip(COUNTED_EAGER_CAUSES, eager, strict=True) if n},
        row.p50,
        row.p99,
        row.gpu_p50,
        row.gpu_p99,
        row.gpu_count,
        where.outermost,
        row.unknown,
        row.items,
        row.covered if where.mode in OUTSIDE else row.latency_sum,
        process.host,
        row.stalled_count,
        row.stalled_sum,
        _call_seconds(row),
        row.caller_p50,
        row.caller_p99,
        where.bounds,
    )


def _call_seconds(row: _StoredMinute) -> float | None:
    """Return the seconds of all calls.

    Agents time only a part of very short calls; their mean extrapolates to the rest.
    """
    if row.stalled_count is None:
        return None
    timed = row.latency_count
    steady = row.latency_sum / timed * max(row.calls - row.stalled_count, timed) if timed else 0.0
    return steady + (row.stalled_sum or 0.0)


def read_series(
    arm: Arm, version_ids: Collection[int], environment: str, changed: ModeChanges
) -> dict[int, SeriesKey]:
    """Return the series of these versions, by Series.id."""
    kept = Series.objects.filter(version_id__in=list(version_ids), environment=environment).exclude(
        region=OTHER, bucket=OTHER
    )
    rows = list(
        kept.values_list(
            "id",
            "stratum__gpu",
            "stratum__mode",
            "stratum__runtime",
            "stratum__world_size",
            "region",
            "bucket",
            "outermost",
        )
    )
    layouts = read_bucket_layouts({row[6] for row in rows if row[2] in OUTSIDE})
    found = {}
    for id, gpu, mode, runtime, size, region, bucket, outermost in rows:
        change = changed.get(RegionPlacement(region, gpu, size))
        way = (normalize_mode(mode), runtime) if change is None else (change, "")
        bounds = layouts.get(bucket, ()) if mode in OUTSIDE else None
        found[id] = SeriesKey(
            arm,
            (gpu or "CPU", *way, f"world size {size}" if size > 1 else ""),
            region,
            bucket,
            outermost,
            mode,
            bounds,
        )
    return found
