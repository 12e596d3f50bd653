"""Day history: how the level of a fleet differs between days, from the hourly levels of the days
before the deployment.

A version that follows its baseline is compared with another day. Two properties of the fleet state
how far the days themselves differ: the variance of its level between consecutive days, and the
change that the same weekday had a week earlier.

Algorithm, per region and metric:

1. The change of an hour is its log level minus the level of the same series 24 h earlier, averaged
   over series by calls. A series belongs to one version, so a change of version is none here.
2. Changes are averaged over blocks of 4 h, about the time in which a verdict is reached.
3. The slope of a block on the block a week earlier is fitted by least squares, with PRIOR_DAYS days
   of the assumed variance at slope 0, and clipped to 0 to 1. Fewer than LEAST_PAIRS days with a
   week before them have slope 0: nothing is subtracted.
4. The variance between days is that of the residuals, with PRIOR_DAYS days of the assumed one.

Invariants: only hours before the deployment count; an hour needs `bin_calls` calls; without hours,
the assumed variance holds and nothing is subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.serial_noise import HOUR_MINUTES
from dashboard.regressions.judge.settings import RatioMetric

DAY_HOURS, WEEK_HOURS = 24, 168
BLOCK_HOURS = 4
BLOCKS_PER_DAY = DAY_HOURS // BLOCK_HOURS
BLOCKS_PER_WEEK = WEEK_HOURS // BLOCK_HOURS
PRIOR_DAYS = 3.0
LEAST_PAIRS = 3
"""Days with a day a week earlier from which on the weekday counts."""
AROUND_HOURS = 1
"""Hours before and after an hour whose changes are averaged with its own."""
HISTORY_DAYS = 16
"""Days before the deployment that are read."""


class DayShifts:
    """The variance between days, and the expected change from the day before by hour."""

    __slots__ = ("_changes", "slope", "variance")

    def __init__(self, changes: dict[int, float], slope: float, variance: float) -> None:
        self._changes, self.slope, self.variance = changes, slope, variance

    def expect(self, minute: int) -> float:
        """The change of the log level from the same minute a day earlier that the same weekday had
        a week earlier, times the slope."""
        if not self.slope:
            return 0.0
        middle = minute // HOUR_MINUTES - WEEK_HOURS
        found = [
            self._changes[hour]
            for hour in range(middle - AROUND_HOURS, middle + AROUND_HOURS + 1)
            if hour in self._changes
        ]
        return self.slope * math.fsum(found) / len(found) if found else 0.0


class DayHistory:
    """The hourly rows of the days before a deployment; each row has its hour's first minute, and
    its series as unit."""

    def __init__(self, rows: Iterable[InstanceMinute], deployed_minute: int) -> None:
        self._deployed_hour = deployed_minute // HOUR_MINUTES
        self._rows: dict[str, list[InstanceMinute]] = {}
        for row in rows:
            if row.outermost and row.minute < self._deployed_hour * HOUR_MINUTES:
                self._rows.setdefault(row.region, []).append(row)

    def read_shifts(self, region: str, metric: RatioMetric, least: int) -> DayShifts:
        """The shifts of one metric in one region. An hour needs `least` calls."""
        changes = list_changes(self._rows.get(region, ()), metric, least)
        slope, variance = fit_days(
            average_blocks(changes, self._deployed_hour), metric.day_variance
        )
        return DayShifts(changes, slope, variance)


class HourLevel(NamedTuple):
    """Log level and calls of one series in one hour."""

    level: float
    calls: int


def list_changes(
    rows: Iterable[InstanceMinute], metric: RatioMetric, least: int
) -> dict[int, float]:
    """The mean change of each hour from the same hour a day earlier."""
    levels: dict[object, dict[int, HourLevel]] = {}
    for row in rows:
        value, samples = metric.value(row), metric.samples(row)
        if value is not None and samples >= least and 0.0 < value < math.inf:
            series = levels.setdefault((row.unit, row.stratum, row.bucket), {})
            series[row.minute // HOUR_MINUTES] = HourLevel(
                metric.worse * math.log(value), row.calls
            )
    sums: dict[int, list[float]] = {}
    for series in levels.values():
        for hour, now in series.items():
            before = series.get(hour - DAY_HOURS)
            if before is not None:
                weight = min(now.calls, before.calls)
                entry = sums.setdefault(hour, [0.0, 0.0])
                entry[0] += weight * (now.level - before.level)
                entry[1] += weight
    return {hour: total / weight for hour, (total, weight) in sums.items() if weight}


def average_blocks(changes: dict[int, float], deployed_hour: int) -> dict[int, float]:
    """The mean change of each block; block 0 ends with the deployment, block 1 before it."""
    blocks: dict[int, list[float]] = {}
    for hour, change in changes.items():
        blocks.setdefault((deployed_hour - 1 - hour) // BLOCK_HOURS, []).append(change)
    return {
        number: math.fsum(found) / len(found)
        for number, found in blocks.items()
        if 2 * len(found) >= BLOCK_HOURS
    }


def fit_days(blocks: dict[int, float], assumed: float) -> tuple[float, float]:
    """The slope on the week before, and the variance between days."""
    pairs = [
        (change, blocks[number + BLOCKS_PER_WEEK])
        for number, change in blocks.items()
        if number + BLOCKS_PER_WEEK in blocks
    ]
    slope, rest = 0.0, list(blocks.values())
    if len(pairs) >= LEAST_PAIRS * BLOCKS_PER_DAY:
        width = PRIOR_DAYS * BLOCKS_PER_DAY * assumed + math.fsum(x * x for _, x in pairs)
        slope = min(1.0, max(0.0, math.fsum(y * x for y, x in pairs) / width))
        rest = [y - slope * x for y, x in pairs]
    prior = PRIOR_DAYS * BLOCKS_PER_DAY
    squares = math.fsum(each * each for each in rest)
    return slope, (prior * assumed + squares) / (prior + len(rest))
