"""Calls and processes of versions for the Model page: all sums in one query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.selectors.versions.eager_causes import parse_eager_causes, query_eager_causes
from dashboard.fleet.selectors.versions.version_series import (
    CallPoint,
    ProcessPoint,
    SeriesInfo,
    Span,
    list_scraped_versions,
    parse_call_points,
    parse_process_points,
    query_calls,
    query_processes,
)


@dataclass(frozen=True)
class Rollups:
    """Points of the range, and points of each last active day."""

    calls: list[CallPoint]
    own_calls: list[CallPoint]
    processes: list[ProcessPoint]
    own_processes: list[ProcessPoint]
    why_eager: dict[int, EagerBreakdown]
    """Versions in the range, and versions outside the range over their last active day."""


def read_rollups(
    *,
    place: Mapping[str, Any],
    series: Mapping[int, SeriesInfo],
    region: str,
    spans: Mapping[int, Span],
    own: Mapping[int, Span],
    hourly: bool,
    tabled: bool = True,
) -> Rollups:
    """`place` is the project and the environment; `spans` are versions in the range, `own` versions
    outside it, by hours. Without `tabled`, the causes of eager calls stay empty."""
    drawn = {id: facts for id, facts in series.items() if facts.region == region}
    outside, project = list_scraped_versions(series.values()), place["project_id"]
    found = fetch_rows_together(
        query_calls(project_id=project, series=drawn, spans=spans, hourly=hourly),
        query_calls(project_id=project, series=drawn, spans=own, hourly=True),
        query_processes(**place, spans=spans, hourly=hourly),
        query_processes(**place, spans=own, hourly=True),
        query_eager_causes(project_id=project, series=drawn, spans=spans, hourly=hourly)
        if tabled
        else None,
        query_eager_causes(project_id=project, series=drawn, spans=own, hourly=True),
    )
    return Rollups(
        parse_call_points(found[0], drawn, hourly=hourly),
        parse_call_points(found[1], drawn, hourly=True),
        parse_process_points(found[2], outside, hourly=hourly),
        parse_process_points(found[3], outside, hourly=True),
        parse_eager_causes([*found[4], *found[5]], drawn),
    )
