"""Quantiles: the p50 of versions per time bin, from merged sketches instead of means of
quantiles."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dashboard.common.raw_queries import fetch_rows
from dashboard.fleet.metrics.aggregate import all_report_stalls, bin_calls
from dashboard.fleet.metrics.first_bucket import QuantileBound, find_quantile_bound
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.selectors.versions.version_series import (
    Span,
    parse_call_points,
    query_calls,
    read_outermost_series,
    read_region_seconds,
)

MEDIAN = 0.5


@dataclass(frozen=True)
class P50Level:
    """p50 of the wall time of one version in one bin, in seconds.

    `value` is None if the p50 lies in an engine's first bucket; `known` then holds its bound.
    """

    value: float | None
    known: QuantileBound | None = None

    @property
    def at_most(self) -> float:
        """Value, else the upper bound."""
        return self.value if self.value is not None else self.known.bound if self.known else 0.0


def read_p50_levels(
    *,
    project_id: int,
    version_ids: Collection[int],
    environment: str,
    window: TimeBins,
    region: str = "",
) -> dict[int, dict[int, P50Level]]:
    """Return the p50 by version and bin; a bin without a timed call is absent.

    All versions share one region: the named one, else the region with the most call time.
    """
    hourly, span = window.step % 60 == 0, Span(window.first, window.last)
    series = read_outermost_series(
        project_id=project_id, version_ids=version_ids, environment=environment
    )
    region = region or next(
        iter(read_region_seconds(project_id=project_id, series=series, span=span, hourly=hourly)),
        "",
    )
    series = {id: facts for id, facts in series.items() if facts.region == region}
    rows = query_calls(
        project_id=project_id, series=series, spans=dict.fromkeys(version_ids, span), hourly=hourly
    )
    points = parse_call_points(fetch_rows(rows), series, hourly=hourly) if rows is not None else []
    grid = bin_calls(points, window, "wall", all_report_stalls(points))
    found: dict[int, dict[int, P50Level]] = {}
    for version, bins in grid.items():
        for place, calls in bins.items():
            level = P50Level(
                calls.sketch.quantile(MEDIAN), find_quantile_bound(calls.sketch, MEDIAN)
            )
            if level.value is not None or level.known is not None:
                found.setdefault(version, {})[place] = level
    return found
