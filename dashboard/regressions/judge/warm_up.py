"""Warm-up: learns from young processes of past versions after how many minutes call time settles.

Algorithm: difference in differences, pooled over versions.

- The excess of a process at an age is its log level in a window of 5 minutes less its own level
  between the ages of 60 and 180 minutes, less the same difference of processes that were at least
  60 minutes older. Load and time of day affect both and cancel out.
- A version yields, for each window, the number of its processes, the sum of their excesses and the
  sum of squares.
- The excess of a window is the median over versions of their mean excess. A window is unsettled if
  the excess is above `LIMIT` and above twice its standard error.
- The learned warm-up is the end of the last unsettled window. It is unknown while the standard
  error of a later window is above `MAX_ERROR`.

Invariants:

- only minutes after a deployment are read, and only processes that start in its first hours;
- a process without older processes in its cell teaches nothing;
- a minority of versions that are slow for their first hour does not lengthen the warm-up;
- the result is a multiple of 5 minutes, so a night without new information changes nothing.

Source: difference in differences; median with the median absolute deviation (Huber).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean, median

from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.inputs import InstanceMinute, Stratum
from dashboard.regressions.judge.settings import P50, RatioMetric, Settings

MAX_WARM_UP_MINUTES = 60
"""The longest learned warm-up. A longer one can only be set."""
WINDOW_MINUTES = 5
WINDOWS = range(WINDOW_MINUTES, MAX_WARM_UP_MINUTES, WINDOW_MINUTES)
"""Ages at which the windows begin."""
SETTLED_MINUTES = 180
"""Age at which the process's own later level ends."""
LEAST_WINDOW_MINUTES, LEAST_LATER_MINUTES = 3, 30
"""Minimum number of minutes with a level, in a window and in the later level."""
STARTS_MINUTES = 240
"""Minutes after the deployment in which a process must start."""
MAX_SERIES = 1000
"""Series of one arm that a pair reads. A series is one process in one cell."""
MAX_CONTROLS = 20
"""Older processes that a young process is compared with."""
LIMIT = P50.smallest_effect / 5
MAX_ERROR = 1.5 * LIMIT
"""With this error an excess of 3% is detected. A window that is missed is near the end of the
decay, so the learned warm-up is then one or two windows short."""
LEAST_VERSIONS, LEAST_PROCESSES = 5, 20
MEDIAN_FACTOR, DEVIATION_FACTOR = 1.2533, 1.4826
"""Standard error of a median relative to that of a mean, and the standard deviation relative to the
median absolute deviation, of a normal distribution."""

WarmUpSums = dict[str, list[float]]
"""By the age at which a window begins: number of processes, sum of excesses, sum of squares."""
Cell = tuple[Stratum, str, str]
"""Stratum, region and shape bucket."""


@dataclass(frozen=True)
class LearnedWarmUp:
    """Minutes until the level of a young process has settled, with the number of processes and
    versions that showed it."""

    minutes: int
    processes: int
    versions: int


class _Levels:
    """Log levels of one process in one cell by metric and minute since the deployment."""

    __slots__ = ("by_metric", "start")

    def __init__(self, start: int, metrics: Sequence[RatioMetric]) -> None:
        self.start = start
        empty = [math.nan] * (STARTS_MINUTES + SETTLED_MINUTES)
        self.by_metric = {metric.name: array("d", empty) for metric in metrics}


class WarmUpLesson:
    """The lesson of one pair: call `observe` after every minute, and `taught` at the end."""

    def __init__(self, settings: Settings) -> None:
        self._metrics = [
            metric
            for metric in settings.metrics
            if isinstance(metric, RatioMetric) and metric.leads
        ]
        self._cells: dict[Cell, dict[str | int, _Levels]] = {}
        self._series = {"baseline": 0, "candidate": 0}
        self._comparison: Comparison | None = None

    def observe(self, comparison: Comparison, rows: Iterable[InstanceMinute]) -> None:
        """Records the levels of a minute."""
        self._comparison = comparison
        place = (comparison.minute or 0) - comparison.deployed_minute
        if not 0 <= place < STARTS_MINUTES + SETTLED_MINUTES:
            return
        for row in rows:
            if row.calls > 0 and row.outermost:
                self._record(row, place, row.first_minute - comparison.deployed_minute)

    def _record(self, row: InstanceMinute, place: int, start: int) -> None:
        cell = self._cells.setdefault((row.stratum, row.region, row.bucket), {})
        levels = cell.get(row.instance)
        if levels is None:
            if self._series[row.arm] == MAX_SERIES:
                return
            self._series[row.arm] += 1
            levels = cell[row.instance] = _Levels(start, self._metrics)
        for metric in self._metrics:
            value = metric.value(row)
            if value is not None and 0.0 < value < math.inf:
                levels.by_metric[metric.name][place] = metric.worse * math.log(value)

    def taught(self) -> WarmUpSums:
        """The sums of all young processes as JSON types; empty if there was none to compare."""
        found: dict[str | int, dict[int, list[float]]] = {}
        for (_, region, _), series in self._cells.items():
            metric = self._find_judged(region)
            for instance, excess in _list_excesses(series, metric) if metric else ():
                for age, value in excess.items():
                    found.setdefault(instance, {}).setdefault(age, []).append(value)
        sums: WarmUpSums = {}
        for ages in found.values():
            for age, values in ages.items():
                total, value = sums.setdefault(str(age), [0, 0.0, 0.0]), fmean(values)
                total[0] += 1
                total[1] += value
                total[2] += value * value
        return sums

    def _find_judged(self, name: str) -> str:
        region = self._comparison.regions.get(name) if self._comparison else None
        judged = (one.name for one in self._metrics if region is not None and region.is_judged(one))
        return next(judged, "")


def _list_excesses(
    series: Mapping[str | int, _Levels], metric: str
) -> Iterable[tuple[str | int, dict[int, float]]]:
    """The excesses by age of each young process of a cell."""
    common: dict[int, dict[int, float]] = {}
    for instance, levels in series.items():
        start = levels.start
        if not 0 <= start < STARTS_MINUTES:
            continue
        own = _compute_changes(levels.by_metric[metric], start)
        if own and start not in common:
            common[start] = _compute_common_changes(series, metric, start)
        excess = {age: own[age] - common[start][age] for age in own if age in common[start]}
        if excess:
            yield instance, excess


def _compute_common_changes(
    series: Mapping[str | int, _Levels], metric: str, start: int
) -> dict[int, float]:
    """The mean changes by window of the older processes, at the same minutes."""
    older = (one for one in series.values() if one.start <= start - MAX_WARM_UP_MINUTES)
    changes = (_compute_changes(one.by_metric[metric], start) for one in older)
    by_age: dict[int, list[float]] = {}
    for change in islice(filter(None, changes), MAX_CONTROLS):
        for age, value in change.items():
            by_age.setdefault(age, []).append(value)
    return {age: fmean(values) for age, values in by_age.items()}


def _compute_changes(levels: array[float], start: int) -> dict[int, float]:
    """The level of each window less the later level; empty without a later level."""
    later = _mean_level(
        levels, start + MAX_WARM_UP_MINUTES, start + SETTLED_MINUTES, LEAST_LATER_MINUTES
    )
    if later is None:
        return {}
    found = {}
    for age in WINDOWS:
        begin = start + age
        level = _mean_level(levels, begin, begin + WINDOW_MINUTES, LEAST_WINDOW_MINUTES)
        if level is not None:
            found[age] = level - later
    return found


def _mean_level(levels: array[float], start: int, end: int, least: int) -> float | None:
    known = [level for level in levels[start:end] if not math.isnan(level)]
    return fmean(known) if len(known) >= least else None


def pool_warm_up(versions: Sequence[Mapping[str, Sequence[float]]]) -> LearnedWarmUp | None:
    """The warm-up that the lessons of all versions show; None if they show too little."""
    last = [version[str(WINDOWS[-1])] for version in versions if str(WINDOWS[-1]) in version]
    processes = int(sum(sums[0] for sums in last))
    if len(last) < LEAST_VERSIONS or processes < LEAST_PROCESSES:
        return None
    minutes = WINDOWS[0]
    for age in reversed(WINDOWS):
        lessons = [version[str(age)] for version in versions if str(age) in version]
        if len(lessons) < LEAST_VERSIONS:
            return None
        excess, error = _pool_window(lessons)
        if excess > LIMIT and excess > 2 * error:
            minutes = age + WINDOW_MINUTES
            break
        if error > MAX_ERROR:
            return None
    return LearnedWarmUp(minutes, processes, len(last))


def _pool_window(lessons: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The median of the versions' mean excesses, and its standard error: the larger of the errors
    that the spread of versions and the spread of processes imply."""
    means = [total / count for count, total, _ in lessons]
    middle = median(means)
    between = (DEVIATION_FACTOR * median(abs(mean - middle) for mean in means)) ** 2
    freedom = sum(count - 1 for count, _, _ in lessons)
    squares = math.fsum(square - total * total / count for count, total, square in lessons)
    within = max(squares, 0.0) / freedom * fmean(1 / one[0] for one in lessons) if freedom else 0.0
    return middle, MEDIAN_FACTOR * math.sqrt(max(between, within) / len(lessons))
