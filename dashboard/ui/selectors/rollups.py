"""Calls, processes and memory of versions, as the Model page draws and lists them: everything that is added up, in one query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.common.raw_queries import rows_together
from dashboard.fleet.metrics.eager_causes import WhyEager
from dashboard.fleet.selectors.instances.memory import MemoryFacts, memory_of, memory_rows
from dashboard.fleet.selectors.versions.eager_causes import eager_rows, versions_eager
from dashboard.fleet.selectors.versions.version_series import (
    CallPoint,
    ProcessPoint,
    SeriesFacts,
    Span,
    call_points_of,
    call_rows,
    process_points_of,
    process_rows,
    versions_outside,
)


@dataclass(frozen=True)
class Rollups:
    """The points of the range, those of own last days, and the memory of the versions in the range."""

    calls: list[CallPoint]
    own_calls: list[CallPoint]
    processes: list[ProcessPoint]
    own_processes: list[ProcessPoint]
    memory: dict[int, MemoryFacts]
    why_eager: dict[int, WhyEager]
    """Of the versions in the range, and of those outside it over their own last day."""


def rollups(
    *,
    place: Mapping[str, Any],
    series: Mapping[int, SeriesFacts],
    region: str,
    spans: Mapping[int, Span],
    own: Mapping[int, Span],
    hourly: bool,
) -> Rollups:
    """`place` is the project and the environment; `spans` are of the versions in the range, `own` of those outside it, by hours."""
    drawn = {id: facts for id, facts in series.items() if facts.region == region}
    outside, project = versions_outside(series.values()), place["project_id"]
    found = rows_together(
        call_rows(project_id=project, series=drawn, spans=spans, hourly=hourly),
        call_rows(project_id=project, series=drawn, spans=own, hourly=True),
        process_rows(**place, spans=spans, hourly=hourly),
        process_rows(**place, spans=own, hourly=True),
        memory_rows(**place, spans=spans, hourly=hourly),
        eager_rows(project_id=project, series=drawn, spans=spans, hourly=hourly),
        eager_rows(project_id=project, series=drawn, spans=own, hourly=True),
    )
    return Rollups(
        call_points_of(found[0], drawn, hourly=hourly),
        call_points_of(found[1], drawn, hourly=True),
        process_points_of(found[2], outside, hourly=hourly),
        process_points_of(found[3], outside, hourly=True),
        memory_of(found[4]),
        versions_eager([*found[5], *found[6]], drawn),
    )
