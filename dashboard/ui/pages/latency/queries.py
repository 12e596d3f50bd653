"""Data of the latency panels: the calls of two versions over a range, by series or by host."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, QuerySet

from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.models import Instance, RegionMinute, Series, WatchedModel
from dashboard.fleet.selectors.versions.version_series import (
    EAGER_COLUMNS,
    STALLED,
    CallPoint,
    SeriesInfo,
    Span,
    filter_days,
    make_slot_filter,
    parse_call_points,
    query_calls,
    read_outermost_series,
    read_region_seconds,
)
from dashboard.ui.charts.version_styles import BASELINE, JUDGED, VersionStyle
from dashboard.ui.pages.model.verdict_queries import ModelVerdicts

DIMENSIONS = {"gpu": "GPU", "mode": "Mode", "region": "Region", "host": "Host"}
MAX_HOST_MINUTES = 60
MAX_HOST_INSTANCES = 60
"""Calls by host are stored per instance and minute only, so fewer of them are read."""


@dataclass(frozen=True)
class LatencyData:
    """The calls of the pair; `note` names the calls that were not read."""

    pair: list[VersionStyle]
    series: dict[int, SeriesInfo]
    region: str
    points: list[CallPoint] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """The group of each point, if grouped."""
    window: TimeBins = field(default_factory=lambda: TimeBins(0, 1, 1))
    note: str = ""


def list_pair(standing: ModelVerdicts) -> list[VersionStyle]:
    """Baseline and evaluated version, as far as they are known."""
    found = []
    if standing.baseline is not None:
        found.append(VersionStyle(standing.baseline.pk, standing.baseline.name, BASELINE))
    if standing.judged is not None:
        version = standing.judged.version
        found.append(VersionStyle(version.pk, version.name, JUDGED))
    return found


def read_latency(
    model: WatchedModel, standing: ModelVerdicts, window: TimeBins, *, region: str, by: str = ""
) -> LatencyData:
    """The calls of both versions in the range, in at most four queries. Without `region`,
    the busiest region; a group by region reads all regions."""
    pair = list_pair(standing)
    series = read_outermost_series(
        project_id=model.project_id,
        version_ids=[style.id for style in pair],
        environment=standing.environment,
    )
    hourly, span = window.step % 60 == 0, Span(window.first, window.last)
    if by != "region":
        regions = read_region_seconds(
            project_id=model.project_id, series=series, span=span, hourly=hourly
        )
        region = region if region in regions else next(iter(regions), "")
        series = {id: facts for id, facts in series.items() if facts.region == region}
    if by == "host":
        return _read_by_host(model, standing, pair, series, window, region)
    spans = dict.fromkeys([style.id for style in pair], span)
    rows = query_calls(project_id=model.project_id, series=series, spans=spans, hourly=hourly)
    told = [] if rows is None else fetch_rows(rows)
    points = parse_call_points(told, series, hourly=hourly)
    names = _name_groups([row[0] for row in told], series, by)
    return LatencyData(pair, series, region, points, names, window)


def _name_groups(ids: Sequence[int], series: dict[int, SeriesInfo], by: str) -> list[str]:
    if by == "region":
        return [series[id].region for id in ids]
    if by not in ("gpu", "mode"):
        return [""] * len(ids)
    strata = dict(Series.objects.filter(pk__in=series).values_list("pk", f"stratum__{by}"))
    return [strata.get(id, "") for id in ids]


def _read_by_host(
    model: WatchedModel,
    standing: ModelVerdicts,
    pair: list[VersionStyle],
    series: dict[int, SeriesInfo],
    window: TimeBins,
    region: str,
) -> LatencyData:
    last = min(window.last, clock.minute_of(clock.unix()) + 1)
    short = TimeBins(max(window.first, last - MAX_HOST_MINUTES), last, 1)
    hosts, more = _list_hosts(model, standing, pair, short.first)
    rows = _query_instances(model.project_id, hosts, series, Span(short.first, short.last))
    told = list(rows) if hosts and series else []
    note = f"The newest {short.count} min, minute by minute."
    if more:
        note += f" {MAX_HOST_INSTANCES} instances; other instances are not read."
    points = parse_call_points([row[:-1] for row in told], series, hourly=False)
    names = [hosts.get(row[-1], "") for row in told]
    return LatencyData(pair, series, region, points, names, short, note)


def _list_hosts(
    model: WatchedModel, standing: ModelVerdicts, pair: list[VersionStyle], since: int
) -> tuple[dict[int, str], bool]:
    """The hosts of the instances that reported last, and whether there are more instances."""
    rows = Instance.objects.filter(
        project_id=model.project_id,
        model=model,
        version_id__in=[style.id for style in pair],
        environment=standing.environment,
        last_minute__gte=since,
    ).order_by("-last_minute", "pk")
    found = list(rows.values_list("pk", "host")[: MAX_HOST_INSTANCES + 1])
    return dict(found[:MAX_HOST_INSTANCES]), len(found) > MAX_HOST_INSTANCES


def _query_instances(
    project_id: int, instances: Collection[int], series: Collection[int], span: Span
) -> QuerySet[Any, Any]:
    """Rows for `parse_call_points`, each with its instance at the end."""
    eager = sum((F(name) for name in EAGER_COLUMNS[1:]), F(EAGER_COLUMNS[0]))
    rows: QuerySet[Any, Any] = RegionMinute.objects.filter(
        filter_days([span]),
        project_id=project_id,
        instance_id__in=instances,
        series_id__in=series,
        **make_slot_filter(span, hourly=False),
    ).annotate(eager=eager, known=F("compiled") + F("partial") + eager)
    columns = ("series_id", "minute", "calls", "errors", "items", "eager", "known")
    timed = ("latency_count", "latency_sum", "gpu_count", "latency", "gpu", *STALLED, "covered")
    return rows.values_list(*columns, *timed, "instance_id")
