"""Fleet calls: the calls of all versions of a project per bin, for the Fleet page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, F, FloatField, Q, QuerySet, Sum, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, NullIf, Round

from dashboard.fleet.fold.cached_quantiles import merge_packed_groups
from dashboard.fleet.models import VersionHour, VersionMinute
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange, SparklineBin, VersionData
from dashboard.fleet.selectors.versions.observed_calls import sum_observed_calls

RECENT_MINUTES = 15


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


def _cast_bigint(total: Combinable) -> Cast:
    """Cast a sum to an integer: PostgreSQL returns sums of big integers as decimals."""
    return Cast(total, BigIntegerField())


_BIN_SUMS: dict[str, Any] = {
    "n": _cast_bigint(Sum("calls")),
    # Agents time only a part of very short calls. Their mean extrapolates to all calls of the
    # region.
    "seconds": Sum(
        F("latency_sum") * F("calls") / NullIf(F("latency_count"), 0),
        output_field=FloatField(),
    ),
    "n_compiled": _cast_bigint(Sum("compiled")),
    "n_looked": _cast_bigint(Round(Sum(sum_observed_calls()))),
    "n_stalled": _cast_bigint(Coalesce(Sum("stalled_count"), 0)),
    "n_reporting": _cast_bigint(Coalesce(Sum("calls", filter=Q(stalled_count__isnull=False)), 0)),
    "n_timed": _cast_bigint(Coalesce(Sum("calls", filter=Q(latency_count__gt=0)), 0)),
    "weight": _cast_bigint(Sum("calls", filter=Q(p50__isnull=False))),
    "p50_weighted": Sum(F("p50") * F("calls"), output_field=FloatField()),
    "p99_weighted": Sum(F("p99") * F("calls"), output_field=FloatField()),
    "caller_weight": _cast_bigint(Sum("calls", filter=Q(caller_p50__isnull=False))),
    "caller_p50_weighted": Sum(F("caller_p50") * F("calls"), output_field=FloatField()),
    "caller_p99_weighted": Sum(F("caller_p99") * F("calls"), output_field=FloatField()),
}
"""Sums of a bin, in the order of `CallBin` after its keys."""


def filter_series(project_id: int, window: BinnedRange, environment: str) -> dict[str, Any]:
    """Return the condition on rows of calls: callers' calls of series that reported in the
    range."""
    wanted = {
        "series__project_id": project_id,
        "series__outermost": True,
        "series__last_minute__gte": window.start,
    }
    return wanted | ({"series__environment": environment} if environment else {})


def query_call_bins(
    series: dict[str, Any], project_id: int, window: BinnedRange
) -> QuerySet[Any, Any]:
    """Return the query of `CallBin` rows, added in the database over strata and shapes.

    A fleet has many more series than versions.
    """
    step = 60 if window.hourly else 1
    slot = (F("hour" if window.hourly else "minute") - window.start // step) / (window.bin // step)
    return _query_calls(series, project_id, window, slot)


def query_call_totals(
    series: dict[str, Any], project_id: int, window: BinnedRange
) -> QuerySet[Any, Any]:
    """Return the query of one `CallBin` row for the whole range, in slot 0."""
    return _query_calls(series, project_id, window, Value(0, BigIntegerField()))


def _query_calls(
    series: dict[str, Any], project_id: int, window: BinnedRange, slot: Any
) -> QuerySet[Any, Any]:
    table: type[VersionMinute] | type[VersionHour] = VersionHour if window.hourly else VersionMinute
    unit, step = ("hour", 60) if window.hourly else ("minute", 1)
    rows = (
        filter_slots(table.objects.filter(project_id=project_id, **series), unit, step, window)
        # Text columns last: rows are sorted by these columns, and numbers compare faster.
        .values(version=F("series__version_id"), slot=slot, region=F("series__region"))
        .order_by()
        .annotate(**_BIN_SUMS)
    )
    bins: QuerySet[Any, Any] = rows.values_list("version", "region", "slot", *_BIN_SUMS)
    return bins


def filter_slots(rows: QuerySet[Any], unit: str, step: int, window: BinnedRange) -> QuerySet[Any]:
    """Return the rows within the range; `step` is the number of minutes of a `unit`."""
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


def add_calls(
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


def query_recent_calls(series: dict[str, Any], project_id: int, end: int) -> QuerySet[Any, Any]:
    """Return the query of the last minutes with sketches, for the exact latest values."""
    return _filter_recent(series, project_id, end).values_list(
        "series__version_id", "series__region", "calls", "latency", "stalled_count", "stalled"
    )


def query_recent_counts(series: dict[str, Any], project_id: int, end: int) -> QuerySet[Any, Any]:
    """Return the query of the calls of the last minutes by version and region, without sketches."""
    rows = _filter_recent(series, project_id, end)
    counts: QuerySet[Any, Any] = (
        rows.values(version=F("series__version_id"), region=F("series__region"))
        .order_by()
        .annotate(n=_cast_bigint(Sum("calls")))
        .values_list("version", "region", "n")
    )
    return counts


def _filter_recent(series: dict[str, Any], project_id: int, end: int) -> QuerySet[VersionMinute]:
    since = end - RECENT_MINUTES
    return VersionMinute.objects.filter(
        project_id=project_id,
        day__gte=since // 1440,
        day__lte=end // 1440,
        day__in=range(since // 1440, end // 1440 + 1),
        minute__gt=since,
        minute__lte=end,
        **series,
    )


def add_recent(
    versions: dict[int, VersionData],
    rows: Iterable[tuple[Any, ...]],
    regions: dict[int, str],
    models: Mapping[int, int],
    *,
    counted: bool = False,
) -> None:
    """Add the recent calls of the regions in `regions`; `models` is the model of each version.

    With `counted`, the number of calls is known already.
    """
    packed: dict[int, list[bytes | None]] = defaultdict(list)
    shown = [row for row in rows if regions.get(row[0]) == row[1]]
    silent = {
        models.get(version)
        for version, _, calls, _, stalled_count, _ in shown
        if calls and stalled_count is None
    }
    for version, _, calls, sketch, _, stalled in shown:
        versions[version].recent_calls += 0 if counted else calls
        packed[version] += [sketch] if models.get(version) in silent else [sketch, stalled]
    for version, merged in zip(packed, merge_packed_groups(packed.values()), strict=True):
        versions[version].recent = merged
