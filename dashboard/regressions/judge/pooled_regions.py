"""Pooled regions: call time over all outermost regions of a comparison.

With many regions, each one gets a small part of the error budget, and a change of a few percent in
all of them would be found in none. One more series treats regions as buckets: an instance's
difference is the mean over its regions, weighted by traffic. It is evaluated with its own part of
the budget, and never holds back HEALTHY.
"""

from __future__ import annotations

from collections.abc import Collection

from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.inputs import CellKey, CellRows
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.level_reading import read_level
from dashboard.regressions.judge.region_state import Region
from dashboard.regressions.judge.settings import RatioMetric, Settings
from dashboard.regressions.judge.verdict_policy import JudgedTrack, Track

ALL_REGIONS = ""


class PooledRegions:
    """The series of metrics that lead, over all regions."""

    def __init__(self, settings: Settings) -> None:
        self.entries = [
            (RatioSeries(metric, settings), Track(metric))
            for metric in settings.metrics
            if isinstance(metric, RatioMetric) and metric.leads
        ]
        self._settings = settings

    def remember(self, minute: int, regions: Collection[Region]) -> None:
        """Adds a minute of the baseline before the deployment."""
        rows = merge_rows(regions)
        for series, _ in self.entries:
            series.remember(minute, rows)

    def add(self, minute: int, regions: Collection[Region], budget: ErrorBudget) -> None:
        """Adds the minute that the regions have just closed."""
        rows = merge_rows(regions)
        pooled = budget.pooled()
        for series, track in self.entries:
            minutes = series.add(minute, rows)
            if minutes:
                reading = read_level(series, pooled, track.driving or track.released)
                track.step(minute, minutes, reading, series.matched_minutes, self._settings)

    def judged(self, regions: Collection[Region]) -> list[JudgedTrack]:
        """The tracks whose metric decides in a region."""
        return [
            JudgedTrack(track, series, True)
            for series, track in self.entries
            if any(region.is_judged(series.metric) for region in regions)
        ]


def merge_rows(regions: Collection[Region]) -> dict[CellKey, CellRows]:
    """The rows of the regions' last minutes, with the region as part of the bucket."""
    return {
        (stratum, f"{region.name} {bucket}"): cell
        for region in sorted(regions, key=lambda region: region.name)
        for (stratum, bucket), cell in region.closed.items()
    }
