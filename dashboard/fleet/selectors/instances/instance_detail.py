"""Instance detail: an instance's regions compared with other instances, its compilations and
findings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db.models import F, FloatField, Q, Sum

from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.fold.sketch_columns import merge_packed_by_key
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.metrics.first_bucket import QuantileBound, find_quantile_bound
from dashboard.fleet.models import CompileEvent, FindingInstance, Instance, RegionMinute
from dashboard.fleet.selectors.compilations.cache_outcomes import COMPILATION
from dashboard.fleet.selectors.versions.eager_causes import SUMS, build_breakdown
from dashboard.fleet.selectors.versions.version_series import (
    SeriesInfo,
    Span,
    filter_days,
    read_outermost_series,
)

WINDOW_MINUTES = 60
MAX_EVENTS, MAX_FINDINGS, MAX_HISTORY = 40, 60, 2000


@dataclass(frozen=True)
class SeriesNumbers:
    """Values of one instance in one series."""

    calls: int
    p50: float | None
    p99: float | None
    eager: float | None
    why: EagerBreakdown
    p50_below: QuantileBound | None = None
    p99_below: QuantileBound | None = None
    """Bounds of quantiles in an engine's first bucket, which have no value."""


@dataclass(frozen=True)
class RegionVsOthers:
    """One instance in one series, and the median of the other instances of its version.

    `others` is the number of other instances.
    """

    series: SeriesInfo
    own: SeriesNumbers
    others: int
    p50: float | None
    p99: float | None
    eager: float | None
    slower_than: int
    """Number of other instances with a lower p50."""


@dataclass(frozen=True)
class FrameHistory:
    """Durations in seconds of a frame's compilations on all instances of the model."""

    count: int
    typical: float
    longest: float


@dataclass(frozen=True)
class InstanceFinding:
    """A finding on this instance."""

    finding_id: int
    kind: str
    text: str
    where: str
    count: int
    last_seen_at: datetime


def read_regions_vs_others(instance: Instance) -> list[RegionVsOthers]:
    """Return the regions of the newest reported hour, the busiest series first; two queries."""
    project, span = (
        instance.project_id,
        Span(instance.last_minute - WINDOW_MINUTES + 1, instance.last_minute + 1),
    )
    series = read_outermost_series(
        project_id=project, version_ids=[instance.version_id], environment=instance.environment
    )
    found = _numbers(project, series, span)
    found |= _read_scraped_numbers(
        project, [id for id, facts in series.items() if facts.outside], span, found
    )
    beside = [
        _compare_region(facts, id, instance.pk, found)
        for id, facts in series.items()
        if (instance.pk, id) in found
    ]
    return sorted(beside, key=lambda one: (-one.own.calls, one.series.region, one.series.bucket))


def _numbers(
    project_id: int, series: Mapping[int, SeriesInfo], span: Span
) -> dict[tuple[int, int], SeriesNumbers]:
    rows = RegionMinute.objects.filter(
        filter_days([span]),
        project_id=project_id,
        series_id__in=list(series),
        minute__gte=span.first,
        minute__lt=span.last,
    )
    summed: dict[str, Any] = {
        "n": Sum("calls"),
        "timed": Sum("calls", filter=Q(p50__isnull=False)),
        "level": Sum(F("p50") * F("calls"), output_field=FloatField()),
        "tail": Sum(F("p99") * F("calls"), output_field=FloatField()),
        "caller_timed": Sum("calls", filter=Q(caller_p50__isnull=False)),
        "caller_level": Sum(F("caller_p50") * F("calls"), output_field=FloatField()),
        "caller_tail": Sum(F("caller_p99") * F("calls"), output_field=FloatField()),
        "silent": Sum("calls", filter=Q(stalled_count__isnull=True)),
        **SUMS,
    }
    found = list(rows.values("instance_id", "series_id").annotate(**summed).order_by())
    # Use the waiting time of callers if every instance reports it, else the duration of steady
    # calls for all.
    of = "" if any(row["silent"] for row in found) else "caller_"
    return {(row["instance_id"], row["series_id"]): _make_numbers(row, of) for row in found}


def _read_scraped_numbers(
    project_id: int,
    series: Collection[int],
    span: Span,
    found: Mapping[tuple[int, int], SeriesNumbers],
) -> dict[tuple[int, int], SeriesNumbers]:
    """Return the values of scraped engines.

    A minute with a quantile in the first bucket has no value, so the mean of minutes would omit it.
    Merged sketches give the quantile or its bound.
    """
    if not series:
        return {}
    rows = RegionMinute.objects.filter(
        filter_days([span]),
        project_id=project_id,
        series_id__in=series,
        minute__gte=span.first,
        minute__lt=span.last,
    )
    sketches = merge_packed_by_key(
        ((id, of), packed)
        for id, of, packed in rows.values_list("instance_id", "series_id", "latency")
    )
    return {
        key: replace(
            found[key],
            p50=sketch.quantile(0.5),
            p99=sketch.quantile(0.99),
            p50_below=find_quantile_bound(sketch, 0.5),
            p99_below=find_quantile_bound(sketch, 0.99),
        )
        for key, sketch in sketches.items()
        if key in found
    }


def _make_numbers(row: Mapping[str, Any], of: str) -> SeriesNumbers:
    why = build_breakdown([row[name] for name in SUMS])
    timed = row[f"{of}timed"]
    level, tail = (
        row[of + name] / timed if timed and row[of + name] is not None else None
        for name in ("level", "tail")
    )
    return SeriesNumbers(row["n"], level, tail, why.share, why)


def _compare_region(
    facts: SeriesInfo, series: int, instance: int, found: Mapping[tuple[int, int], SeriesNumbers]
) -> RegionVsOthers:
    own = found[instance, series]
    others = [numbers for (id, of), numbers in found.items() if of == series and id != instance]
    levels = [one.p50 for one in others if one.p50 is not None]
    bounds = [one.p50_below.bound for one in others if one.p50_below is not None]
    tails = [one.p99 for one in others if one.p99 is not None]
    shares = [one.eager for one in others if one.eager is not None]
    return RegionVsOthers(
        series=facts,
        own=own,
        others=len(others),
        # The median of the known values alone would represent only the slow instances.
        p50=median(levels) if levels and not bounds else None,
        p99=median(tails) if tails and not any(one.p99_below for one in others) else None,
        eager=median(shares) if shares else None,
        slower_than=sum(level < own.p50 for level in levels) + sum(end <= own.p50 for end in bounds)
        if own.p50 is not None
        else 0,
    )


def read_instance_history(
    instance: Instance,
) -> tuple[list[CompileEvent], list[InstanceFinding]]:
    """Return the newest compilations and the findings of the instance, the newest first; one
    query."""
    since = int(instance.started_at.timestamp() // 86400) - 1
    compiled = CompileEvent.objects.filter(
        COMPILATION, project_id=instance.project_id, instance_id=instance.pk, day__gte=since
    ).order_by("-at", "-seq", "-number")
    seen = FindingInstance.objects.filter(instance=instance).order_by("-last_seen_at", "-pk")
    columns = [field.attname for field in CompileEvent._meta.concrete_fields]
    events, findings = fetch_rows_together(
        compiled.values_list(*columns)[:MAX_EVENTS],
        seen.values_list(
            "finding_id",
            "finding__kind",
            "finding__text",
            "finding__where",
            "count",
            "last_seen_at",
        )[:MAX_FINDINGS],
    )
    return (
        sorted(
            (CompileEvent.from_db(compiled.db, columns, row) for row in events),
            key=lambda event: (event.at, event.seq, event.number),
            reverse=True,
        ),
        sorted(
            (InstanceFinding(*row) for row in findings),
            key=lambda one: one.last_seen_at,
            reverse=True,
        ),
    )


def read_frame_history(instance: Instance) -> FrameHistory | None:
    """Return the durations of the frame that the instance compiles, from the newest compilations of
    the model.

    None if the instance compiles nothing, and without earlier compilations.
    """
    if not instance.compiling_frame:
        return None
    rows = CompileEvent.objects.filter(
        COMPILATION,
        project_id=instance.project_id,
        day__gte=int((clock.now() - timedelta(days=35)).timestamp() // 86400),
        version_id__in=instance.model.versions.values("pk"),
        frame=instance.compiling_frame,
        total__isnull=False,
    )
    seconds = [
        float(total)
        for total in rows.order_by("-at").values_list("total", flat=True)[:MAX_HISTORY]
        if total is not None
    ]
    return FrameHistory(len(seconds), median(seconds), max(seconds)) if seconds else None
