"""The first REGRESSED label of each metric, as the design's table counts labels: before hold times,
lone instances and the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.regressions.judge import Comparison
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.process.growth import GrowthSeries
from dashboard.regressions.judge.process.levels import LevelSeries, SingleValueSeries
from dashboard.regressions.judge.process.series import ProcessSeries
from dashboard.regressions.judge.region_state import Series
from dashboard.regressions.judge.verdict_policy import Track


class Labels:
    """The first labelled minute of each metric, over all regions."""

    def __init__(self) -> None:
        self.first: dict[str, int] = {}

    def step(self, minute: int, comparison: Comparison) -> None:
        """Evaluates the readings of the judge in this minute."""
        for series, track in entries(comparison):
            name = track.metric.name
            if (
                track.reading.leaning
                and name not in self.first
                and is_labelled(series, track, comparison)
            ):
                self.first[name] = minute


def entries(comparison: Comparison) -> Iterator[tuple[Series | ProcessSeries, Track]]:
    """Every series of calls and processes."""
    for region in comparison.regions.values():
        yield from region.entries
    yield from comparison.process.entries


def is_labelled(series: Series | ProcessSeries, track: Track, comparison: Comparison) -> bool:
    """True if the change for the worse is confirmed at the level that ROLL BACK requires,
    regardless of the instances that show it."""
    if not isinstance(series, RatioSeries | LevelSeries | GrowthSeries | SingleValueSeries):
        return track.reading.regressed
    estimate, budget = series.estimate, 2 * comparison.comparisons * series.metric.doublings
    return estimate is not None and estimate.delta > estimate.margin(
        comparison.settings.roll_back_alpha / budget
    )
