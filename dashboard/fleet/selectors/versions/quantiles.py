"""The p50 of some versions in bins of time, for a chart or a check of its own: sketches merged, never a mean of quantiles."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dashboard.common.raw_queries import rows_plain
from dashboard.fleet.metrics.aggregate import callers_shared, calls_binned
from dashboard.fleet.metrics.first_bucket import Below, below
from dashboard.fleet.metrics.time_bins import Window
from dashboard.fleet.selectors.versions.version_series import Span, call_points_of, call_rows, region_seconds, series_outermost

MEDIAN = 0.5


@dataclass(frozen=True)
class Level:
    """Wall time of one version in one bin; `value` is None where only `known` is: the bound of an engine's first bucket."""

    value: float | None
    known: Below | None = None

    @property
    def at_most(self) -> float:
        """The value, or the bound below which it lies."""
        return self.value if self.value is not None else self.known.bound if self.known else 0.0


def p50_levels(
    *, project_id: int, version_ids: Collection[int], environment: str, window: Window, region: str = ""
) -> dict[int, dict[int, Level]]:
    """By version and bin; a bin without a timed call is not there. All versions are of one region: the named one, else the one whose
    calls took most time."""
    hourly, span = window.step % 60 == 0, Span(window.first, window.last)
    series = series_outermost(project_id=project_id, version_ids=version_ids, environment=environment)
    region = region or next(iter(region_seconds(project_id=project_id, series=series, span=span, hourly=hourly)), "")
    series = {id: facts for id, facts in series.items() if facts.region == region}
    rows = call_rows(project_id=project_id, series=series, spans=dict.fromkeys(version_ids, span), hourly=hourly)
    points = call_points_of(rows_plain(rows), series, hourly=hourly) if rows is not None else []
    grid = calls_binned(points, window, "wall", callers_shared(points))
    found: dict[int, dict[int, Level]] = {}
    for version, bins in grid.items():
        for place, calls in bins.items():
            level = Level(calls.sketch.quantile(MEDIAN), below(calls.sketch, MEDIAN))
            if level.value is not None or level.known is not None:
                found.setdefault(version, {})[place] = level
    return found
