"""Calls to rows: minutes of instances, and minutes and hours of versions, each merged with what is stored."""

from __future__ import annotations

from typing import Any

from compilewatch.wire.sketch import Sketch
from django.db.models import Model

from dashboard.fleet.fold.counts import EAGER, Calls
from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.keys import SeriesKey, instance_of, series_of
from dashboard.fleet.models import RegionMinute, VersionHour, VersionMinute
from dashboard.fleet.stored.bulk import Row, Table, rows_read, rows_upsert
from dashboard.fleet.stored.dimensions import Ids

COLUMNS = (
    "calls", "errors", "items", "compiled", "partial", *(f"eager_{cause}" for cause in EAGER), "unknown", "sampled", "covered",
    "latency", "gpu", "warmup", "latency_count", "latency_sum", "p50", "p95", "p99", "gpu_count", "gpu_p50", "gpu_p95", "gpu_p99",
)  # fmt: skip


def _table(model: type[Model], *key: str) -> Table:
    return Table(model, key, (*key, *COLUMNS))


REGION_MINUTES = _table(RegionMinute, "project_id", "day", "instance_id", "series_id", "minute")
VERSION_MINUTES = _table(VersionMinute, "project_id", "day", "series_id", "minute")
VERSION_HOURS = _table(VersionHour, "project_id", "day", "series_id", "hour")

ByKey = dict[Row, Calls]


def calls_store(facts: Facts, ids: Ids) -> None:
    """Adds the facts' calls to the minutes and hours that are stored."""
    by_series: dict[tuple[SeriesKey, int], Calls] = {}
    regions: ByKey = {}
    for (source, place, minute), calls in facts.minutes.items():
        series = series_of(source, place)
        key = (source.version.project, minute // 1440, ids.instances[instance_of(source)], ids.series[series], minute)
        _add(by_series, (series, minute), calls)
        regions[key] = calls
    hours: dict[tuple[SeriesKey, int], Calls] = {}
    for (series, minute), calls in by_series.items():
        _add(hours, (series, minute // 60), calls)
    for (source, place, hour), calls in facts.hours.items():
        _add(hours, (series_of(source, place), hour), calls)
    _merge(REGION_MINUTES, regions)
    _merge(VERSION_MINUTES, {(s.version.project, m // 1440, ids.series[s], m): calls for (s, m), calls in by_series.items()})
    _merge(VERSION_HOURS, {(s.version.project, h // 24, ids.series[s], h): calls for (s, h), calls in hours.items()})


def _add(table: dict[Any, Calls], key: Any, calls: Calls) -> None:
    if key in table:
        table[key].add(calls)
    else:
        table[key] = calls.copy()


def _merge(table: Table, wanted: ByKey) -> None:
    """Reads what is stored, adds it, writes the whole. Nobody else writes these rows meanwhile: a version has one folder at a time."""
    width = len(table.key)
    for row in rows_read(table, wanted):
        wanted[row[:width]].add(_calls_of(row[width:]))
    rows_upsert(table, [(*key, *_columns_of(calls)) for key, calls in wanted.items()])


def _columns_of(calls: Calls) -> Row:
    """Calls as the values of COLUMNS."""
    latency, gpu = calls.latency, calls.gpu
    return (
        calls.calls,
        calls.errors,
        calls.items,
        calls.compiled,
        calls.partial,
        *calls.eager,
        calls.unknown,
        calls.sampled,
        calls.covered,
        _packed(latency),
        _packed(gpu),
        _packed(calls.warmup),
        latency.count if latency else 0,
        latency.sum if latency else 0.0,
        *_quantiles(latency),
        gpu.count if gpu else 0,
        *_quantiles(gpu),
    )


def _quantiles(sketch: Sketch | None) -> tuple[float | None, float | None, float | None]:
    if sketch is None:
        return None, None, None
    return sketch.quantile(0.5), sketch.quantile(0.95), sketch.quantile(0.99)


def _packed(sketch: Sketch | None) -> bytes | None:
    return None if sketch is None else sketch.pack()


def _calls_of(row: Row) -> Calls:
    """The values of COLUMNS as calls."""
    calls, errors, items, compiled, partial, *rest = row
    eager, (unknown, sampled, covered, latency, gpu, warmup) = rest[: len(EAGER)], rest[len(EAGER) : len(EAGER) + 6]
    return Calls(
        calls, errors, items, compiled, partial, eager, unknown, sampled, covered, _unpacked(latency), _unpacked(gpu), _unpacked(warmup)
    )


def _unpacked(data: bytes | None) -> Sketch | None:
    return None if data is None else Sketch.unpack(data)
