"""HeldBy: the metric that holds back HEALTHY, and the kind of data that would lead to a verdict.

Algorithm: of the hard metrics that HEALTHY awaits, call time if its bound is beyond the tolerated
change, else the metric whose bound is furthest beyond. A metric without a bound follows only if
every bound is tolerable.

- Time helps if only the next look is missing, or if the bound falls below the tolerated change
  with the variance that the prior expects at the last look.
- Calls help if an instance has too few of them for a value per minute.
- Instances help otherwise: the variance between instances does not fall with time.

Invariants: the estimate is the one of the metric's row of evidence; nothing here affects a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dashboard.regressions.judge.affected_instances import AffectedSeries
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.evidence import detectable
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.level_reading import find_shown
from dashboard.regressions.judge.pooled_estimate import log_to_change, prior_at
from dashboard.regressions.judge.process.comparison import ComparedSeries
from dashboard.regressions.judge.process.levels import LevelSeries
from dashboard.regressions.judge.rate_ratio import Rate
from dashboard.regressions.judge.reading_state import BoundedSeries
from dashboard.regressions.judge.result import Evidence, HeldBy, Help
from dashboard.regressions.judge.verdict_policy import JudgedTrack


class Awaited(NamedTuple):
    """A series that HEALTHY awaits, with its row of evidence."""

    series: BoundedSeries
    row: Evidence
    leads: bool
    excess: float
    """The bound as a multiple of the tolerated change; from 1 on it holds back HEALTHY."""

    @property
    def order(self) -> tuple[bool, float]:
        """Call time first if it holds back HEALTHY, because other levels follow it."""
        return self.leads and self.excess >= 1.0, self.excess


def find_held_by(
    comparison: Comparison, rows: Sequence[Evidence]
) -> tuple[HeldBy | None, BoundedSeries | None]:
    """The metric that holds back HEALTHY, with its series; None if no metric is awaited."""
    item = max(list_awaited(comparison, rows), key=lambda one: one.order, default=None)
    if item is None:
        return None, None
    row = item.row
    held_by = HeldBy(
        row.metric,
        row.region,
        row.change,
        row.low,
        row.high,
        visible_change(item.series, row, comparison),
        choose_help(item.series, comparison),
    )
    return held_by, item.series


def list_awaited(comparison: Comparison, rows: Sequence[Evidence]) -> Iterator[Awaited]:
    """Hard metrics that HEALTHY awaits."""
    by_place = {(row.metric, row.region): row for row in rows}
    minor = set(comparison.minor_regions()) if len(comparison.regions) > 1 else set()
    tracks: list[tuple[str, JudgedTrack]] = [
        (name, item)
        for name, region in comparison.regions.items()
        if name not in minor and not region.quiet
        for item in region.judged(minor=False)
    ]
    tracks += [("", item) for item in comparison.process.judged()]
    for region, (track, series, _) in tracks:
        row = by_place.get((track.metric.name, region))
        if row is not None and track.metric.hard and series.expected():
            yield Awaited(series, row, track.metric.leads, measure_excess(series))


def measure_excess(series: BoundedSeries) -> float:
    """The bound as a multiple of the tolerated change. A series without a bound holds back HEALTHY,
    or is the last to name."""
    hidden = isinstance(series, RatioSeries) and series.is_within_bucket
    if isinstance(series, RatioSeries | LevelSeries) and not hidden:
        bound = series.bound()
        if bound is not None:
            return bound / math.log1p(series.metric.tolerated)
    return -math.inf if series.tolerable() else 1.0


def visible_change(series: BoundedSeries, row: Evidence, comparison: Comparison) -> float | None:
    """The change that would be detected in 90% of cases with the present data."""
    found = find_error(series, comparison)
    if found is None or row.smallest_visible is None:
        return None
    margin, effect = math.log1p(row.smallest_visible), math.log1p(row.smallest_effect)
    return log_to_change(detectable(margin, effect, *found))


def find_error(series: BoundedSeries, comparison: Comparison) -> tuple[float, int] | None:
    """Standard error and degrees of freedom of a series' change; None without an estimate."""
    if isinstance(series, AffectedSeries):
        return (series.rate.error, series.rate.df) if series.rate else None
    if isinstance(series, RatioSeries):
        shown = find_shown(series, comparison.budget)
        return (shown.estimate.error, shown.estimate.df) if shown else None
    if isinstance(series, ComparedSeries) and series.estimate:
        return series.estimate.error, series.estimate.df
    return None


def choose_help(series: BoundedSeries, comparison: Comparison) -> Help:
    """The cheapest kind of data that leads to a verdict."""
    looks = comparison.settings.looks
    ahead = comparison.policy.looks_taken < len(looks)
    if isinstance(series, AffectedSeries):
        if not series.judged:
            return "calls"
        counted = is_counting_error(series.rate) if series.rate else True
        return "time" if ahead and counted else "calls" if counted else "instances"
    if not isinstance(series, RatioSeries | LevelSeries):
        return "time" if ahead else "instances"
    if series.estimate is None:
        return "time" if series.matched_minutes else "calls"
    if ahead and (series.tolerable() or narrows_enough(series, comparison)):
        return "time"
    few = isinstance(series, RatioSeries) and has_few_calls(series, comparison.settings.bin_calls)
    return "calls" if few else "instances"


def is_counting_error(rate: Rate) -> bool:
    """True if most of a rate's variance is that of the counts, which more calls reduce, and not the
    difference between instances."""
    counts = 1.0 / (rate.events + 0.5) + 1.0 / (rate.base_events + 0.5)
    return counts >= rate.error**2 / 2.0


def narrows_enough(series: RatioSeries | LevelSeries, comparison: Comparison) -> bool:
    """True if the present change is expected to be within the tolerated one at the last look."""
    estimate, settings = series.estimate, comparison.settings
    if estimate is None or comparison.minute is None:
        return False
    rest = settings.looks[-1] - (comparison.minute + 1 - comparison.deployed_minute)
    now, later = (
        prior_at(series.metric.prior_variance, minutes)
        for minutes in (series.matched_minutes, series.matched_minutes + max(rest, 0))
    )
    share = later / now if later < now else 1.0
    margin = estimate.margin(settings.healthy_alpha) * math.sqrt(share)
    return estimate.delta + margin < math.log1p(series.metric.tolerated)


def has_few_calls(series: RatioSeries, least: int) -> bool:
    """True if instances of a version have too few calls for a value per minute, so that minutes are
    merged."""
    cells = series.cells.values()
    baseline = [(cell.traffic.baseline, cell.baseline) for cell in cells]
    candidate = [(cell.traffic.candidate, cell.candidate) for cell in cells]
    return any(
        sum(calls for calls, totals in arm if totals)
        < least * sum(total.minutes for _, totals in arm for total in totals.values())
        for arm in (baseline, candidate)
    )
