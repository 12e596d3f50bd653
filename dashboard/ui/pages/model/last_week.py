"""The values of a model seven days earlier: all versions of that time as one line per chart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.metrics.aggregate import Clock, all_report_stalls, bin_calls, bin_processes
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.models import WatchedModel
from dashboard.fleet.selectors.versions.version_series import (
    Span,
    list_scraped_versions,
    parse_call_points,
    parse_process_points,
    query_calls,
    query_processes,
    read_outermost_series,
)
from dashboard.ui.charts.trends import Trend, build_trends, serialize_trends
from dashboard.ui.charts.version_styles import VersionStyle

WEEK_MINUTES = 7 * 1440
MAX_VERSIONS = 24
"""Maximum number of versions in a shifted range; more versions than that are not read."""
LAST_WEEK = VersionStyle(0, "same time last week", 0)


@dataclass(frozen=True)
class Place:
    """The part of a model that the charts show."""

    environment: str
    region: str
    version_ids: list[int]
    """The versions that ran in the shifted range."""


def shift_window(window: TimeBins) -> TimeBins:
    """The same bins seven days earlier."""
    return replace(window, first=window.first - WEEK_MINUTES, last=window.last - WEEK_MINUTES)


def read_last_week(
    model: WatchedModel, place: Place, window: TimeBins, clock: Clock
) -> dict[str, Any]:
    """The charts of the shifted range as JSON, in at most three queries."""
    project, hourly = model.project_id, window.step % 60 == 0
    ids = place.version_ids[:MAX_VERSIONS]
    series = read_outermost_series(
        project_id=project, version_ids=ids, environment=place.environment
    )
    drawn = {id: facts for id, facts in series.items() if facts.region == place.region}
    spans = dict.fromkeys(ids, Span(window.first, window.last))
    calls, processes = fetch_rows_together(
        query_calls(project_id=project, series=drawn, spans=spans, hourly=hourly),
        query_processes(
            project_id=project, environment=place.environment, spans=spans, hourly=hourly
        ),
    )
    outside = list_scraped_versions(series.values())
    points = [
        point._replace(version_id=LAST_WEEK.id)
        for point in parse_call_points(calls, drawn, hourly=hourly)
    ]
    told = [
        point._replace(version_id=LAST_WEEK.id)
        for point in parse_process_points(processes, outside, hourly=hourly)
    ]
    trends = build_trends(
        window=window,
        drawn=[LAST_WEEK],
        calls=bin_calls(points, window, clock, all_report_stalls(points)),
        processes=bin_processes(told, window),
        starts=[],
        clock=clock,
    )
    return serialize_trends(
        window, [LAST_WEEK], [trend for trend in trends if _has_line(trend)], []
    )


def _has_line(trend: Trend) -> bool:
    return any(value is not None for line in trend.lines for value in line.values)
