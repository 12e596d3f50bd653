"""One instance: its regions beside those of the others of its version, what it compiled and showed, and how long a frame usually takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db.models import F, FloatField, Q, Sum

from dashboard.common import clock
from dashboard.fleet.fold.sketch_columns import merged_by
from dashboard.fleet.metrics.eager_causes import WhyEager
from dashboard.fleet.metrics.first_bucket import Below, below
from dashboard.fleet.models import CompileEvent, FindingInstance, Instance, RegionMinute
from dashboard.fleet.selectors.compilations.cache_outcomes import COMPILATION
from dashboard.fleet.selectors.versions.eager_causes import SUMS, why_of
from dashboard.fleet.selectors.versions.version_series import SeriesFacts, Span, series_outermost, spans_days

MINUTES = 60
EVENTS, FINDINGS, HISTORY = 40, 60, 2000


@dataclass(frozen=True)
class Numbers:
    """What one instance did in one series."""

    calls: int
    p50: float | None
    p99: float | None
    eager: float | None
    why: WhyEager
    p50_below: Below | None = None
    p99_below: Below | None = None
    """Where the quantile of an engine has no value."""


@dataclass(frozen=True)
class RegionBeside:
    """One instance in one series, and the median of the others of its version; `others` is how many there are."""

    series: SeriesFacts
    own: Numbers
    others: int
    p50: float | None
    p99: float | None
    eager: float | None
    slower_than: int
    """Of the others, how many are known to have a lower p50."""


@dataclass(frozen=True)
class FrameHistory:
    """How long compilations of a frame took on every instance of the model."""

    count: int
    typical: float
    longest: float


@dataclass(frozen=True)
class Shown:
    """A finding on this instance."""

    finding_id: int
    kind: str
    text: str
    where: str
    count: int
    last_seen_at: datetime


def regions_beside(instance: Instance) -> list[RegionBeside]:
    """The newest hour that it reported, its busiest series first; two queries."""
    project, span = instance.project_id, Span(instance.last_minute - MINUTES + 1, instance.last_minute + 1)
    series = series_outermost(project_id=project, version_ids=[instance.version_id], environment=instance.environment)
    found = _numbers(project, series, span)
    found |= _of_engines(project, [id for id, facts in series.items() if facts.outside], span, found)
    beside = [_beside(facts, id, instance.pk, found) for id, facts in series.items() if (instance.pk, id) in found]
    return sorted(beside, key=lambda one: (-one.own.calls, one.series.region, one.series.bucket))


def _numbers(project_id: int, series: Mapping[int, SeriesFacts], span: Span) -> dict[tuple[int, int], Numbers]:
    rows = RegionMinute.objects.filter(
        spans_days([span]), project_id=project_id, series_id__in=list(series), minute__gte=span.first, minute__lt=span.last
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
    # What callers waited is shown where every instance reports it, else how long steady calls took on all of them.
    of = "" if any(row["silent"] for row in found) else "caller_"
    return {(row["instance_id"], row["series_id"]): _of(row, of) for row in found}


def _of_engines(
    project_id: int, series: Collection[int], span: Span, found: Mapping[tuple[int, int], Numbers]
) -> dict[tuple[int, int], Numbers]:
    """Of engines that are read from outside: a minute whose quantile lies in the first bucket has none, and is in no mean of minutes."""
    if not series:
        return {}
    rows = RegionMinute.objects.filter(
        spans_days([span]), project_id=project_id, series_id__in=series, minute__gte=span.first, minute__lt=span.last
    )
    sketches = merged_by(((id, of), packed) for id, of, packed in rows.values_list("instance_id", "series_id", "latency"))
    return {
        key: replace(
            found[key],
            p50=sketch.quantile(0.5),
            p99=sketch.quantile(0.99),
            p50_below=below(sketch, 0.5),
            p99_below=below(sketch, 0.99),
        )
        for key, sketch in sketches.items()
        if key in found
    }


def _of(row: Mapping[str, Any], of: str) -> Numbers:
    why = why_of([row[name] for name in SUMS])
    timed = row[f"{of}timed"]
    level, tail = (row[of + name] / timed if timed and row[of + name] is not None else None for name in ("level", "tail"))
    return Numbers(row["n"], level, tail, why.share, why)


def _beside(facts: SeriesFacts, series: int, instance: int, found: Mapping[tuple[int, int], Numbers]) -> RegionBeside:
    own = found[instance, series]
    others = [numbers for (id, of), numbers in found.items() if of == series and id != instance]
    levels = [one.p50 for one in others if one.p50 is not None]
    bounds = [one.p50_below.bound for one in others if one.p50_below is not None]
    tails = [one.p99 for one in others if one.p99 is not None]
    shares = [one.eager for one in others if one.eager is not None]
    return RegionBeside(
        series=facts,
        own=own,
        others=len(others),
        # A median of those alone that have a value would be of the slow ones.
        p50=median(levels) if levels and not bounds else None,
        p99=median(tails) if tails and not any(one.p99_below for one in others) else None,
        eager=median(shares) if shares else None,
        slower_than=sum(level < own.p50 for level in levels) + sum(end <= own.p50 for end in bounds) if own.p50 is not None else 0,
    )


def instance_events(instance: Instance) -> list[CompileEvent]:
    """Its newest compilations."""
    since = int(instance.started_at.timestamp() // 86400) - 1
    rows = CompileEvent.objects.filter(COMPILATION, project_id=instance.project_id, instance_id=instance.pk, day__gte=since)
    return list(rows.order_by("-at", "-seq", "-number")[:EVENTS])


def instance_findings(instance: Instance) -> list[Shown]:
    """What it showed, the newest first."""
    rows = FindingInstance.objects.filter(instance=instance).order_by("-last_seen_at", "-pk")
    columns = ("finding_id", "finding__kind", "finding__text", "finding__where", "count", "last_seen_at")
    return [Shown(*row) for row in rows.values_list(*columns)[:FINDINGS]]


def frame_history(instance: Instance) -> FrameHistory | None:
    """Of the frame that it compiles, as far as the newest compilations of the model tell; None where it compiles none or none is known."""
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
    seconds = [float(total) for total in rows.order_by("-at").values_list("total", flat=True)[:HISTORY] if total is not None]
    return FrameHistory(len(seconds), median(seconds), max(seconds)) if seconds else None
