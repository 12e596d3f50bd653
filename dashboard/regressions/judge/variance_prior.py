"""Variance prior: learns from healthy pairs the spread between instances, between days, and of
counts.

Algorithm: method of moments. Each pair yields sums that add up over pairs:

- `points`: within-arm squares and degrees of freedom after n matched minutes; their quotient is the
  pooled variance between instances;
- `days`: squares of the hours' common change from the day before, less the part that differences
  between instances explain;
- the degrees of freedom of the prior follow from how much the pairs' variances differ beyond
  chance (`fit_prior_df`);
- `counts`: the events' squared deviations beyond Poisson, and their scale; the quotient is the
  squared coefficient of variation.

Invariants:

- each pair is replayed once, and each point of a metric is recorded once per region;
- comparisons with another day are excluded from `points`, because an instance and the past differ
  by other effects;
- a learned value is never below MIN_VARIANCE_SHARE of the default variance;
- a point that fewer than LEAST_PAIRS pairs reached is not used.

Source: analysis of variance components and moment estimation of overdispersion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dashboard.regressions.judge.affected_instances import AffectedSeries
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.inputs import InstanceMinute, Stratum
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.metric import Metric
from dashboard.regressions.judge.pooled_estimate import prior_at
from dashboard.regressions.judge.prior_freedom import fit_prior_df
from dashboard.regressions.judge.process.comparison import ComparedSeries
from dashboard.regressions.judge.process.counts import MissSeries, sum_starts
from dashboard.regressions.judge.settings import PRODUCTION, RatioMetric, Settings
from dashboard.regressions.judge.settings_overrides import LearnedMetric

POINT_MINUTES = (10, 20, 30, 45, 60, 90, 120, 180, 240, 480, 1400)
"""Matched minutes after which the variance is recorded."""
LEAST_PAIRS = 10
"""Minimum number of pairs for a point. The previous point holds beyond, which is the more careful
value."""
MIN_VARIANCE_SHARE = 1 / 25
"""Share of the default variance. A fleet that appears to differ by less has reported the same
number repeatedly."""
PROCESS_INTERVAL_MINUTES = 10
"""Minutes between two readings of process levels, which are recomputed at each."""
DAY_MINUTES, HOUR_MINUTES = 1440, 60
LEAST_MINUTES = 30
LEAST_EVENTS = 5

LessonSums = dict[str, dict[str, Any]]
"""By metric: `points` contains squares and degrees of freedom by minute; `days` and `counts`
contain sums. All of them add up over pairs."""


class Lesson:
    """The lesson of one comparison: call `observe` after every minute, and `taught` at the end."""

    def __init__(self, settings: Settings) -> None:
        self._points: dict[str, dict[int, list[float]]] = {}
        self._seen: dict[tuple[str, str], int] = {}
        self._days = DayPairs(settings)
        self._comparison: Comparison | None = None

    def observe(self, comparison: Comparison, rows: Iterable[InstanceMinute]) -> None:
        """Records each point that a metric has just reached, of a region or of the processes.
        `rows` are the calls of the minute."""
        self._comparison = comparison
        self._days.add(comparison.minute or 0, rows)
        for name, region in comparison.regions.items():
            for series, _ in region.entries:
                if isinstance(series, RatioSeries):
                    self._note(name, series.metric.name, series, series.matched_minutes)
        if (comparison.minute or 0) % PROCESS_INTERVAL_MINUTES:
            return
        for of_process, _ in comparison.process.entries:
            if isinstance(of_process, ComparedSeries) and of_process.groups:
                # A number that is recorded once gains no certainty with time.
                minutes = int(of_process.minutes()) or POINT_MINUTES[0]
                self._note("", of_process.metric.name, of_process, minutes)

    def _note(
        self, region: str, metric: str, series: RatioSeries | ComparedSeries, minutes: int
    ) -> None:
        reached = self._seen.get((region, metric), 0)
        if (
            reached == len(POINT_MINUTES)
            or minutes < POINT_MINUTES[reached]
            or series.estimate is None
        ):
            return
        while reached < len(POINT_MINUTES) and minutes >= POINT_MINUTES[reached]:
            reached += 1
        self._seen[region, metric] = reached
        # Hosts and their own past differ by other effects than instances that run at the same time.
        groups = [group for group in series.estimate.groups if not group.day_share]
        freedom = sum(group.df for group in groups)
        if freedom:
            total = self._points.setdefault(metric, {}).setdefault(
                POINT_MINUTES[reached - 1], [0.0, 0.0]
            )
            total[0] += math.fsum(group.squares() for group in groups)
            total[1] += freedom

    def taught(self) -> LessonSums:
        """All sums as JSON types; empty if the pair had too little data."""
        found: LessonSums = {}
        for name, points in self._points.items():
            found.setdefault(name, {})["points"] = {
                str(minutes): total for minutes, total in points.items()
            }
        for name, sums in self._days.sums().items():
            found.setdefault(name, {})["days"] = sums
        for name, (beyond, scale) in list_count_sums(self._comparison) if self._comparison else ():
            if scale:
                before = found.setdefault(name, {}).get("counts", [0.0, 0.0])
                found[name]["counts"] = [before[0] + beyond, before[1] + scale]
        return found


class DayPairs:
    """The candidate's hours compared with the same hours of the day before, for the same instance,
    stratum and shape."""

    def __init__(self, settings: Settings) -> None:
        self._metrics = [metric for metric in settings.metrics if isinstance(metric, RatioMetric)]
        self._settings = settings
        self._levels: dict[tuple[str, str | int, Stratum, str, str], dict[int, float]] = {}
        self._hours: dict[tuple[str, int, Stratum], dict[str | int, list[float]]] = {}

    def add(self, minute: int, rows: Iterable[InstanceMinute]) -> None:
        """Adds a minute. Only the candidate's rows count, so that no deployment is used twice."""
        for row in rows:
            if (
                row.arm != "candidate"
                or not row.outermost
                or minute - row.first_minute < self._settings.warm_up_minutes
            ):
                continue
            for metric in self._metrics:
                value = metric.value(row)
                if (
                    value is not None
                    and 0.0 < value < math.inf
                    and metric.samples(row) >= self._settings.bin_calls
                ):
                    self._beside(metric.name, row, minute, metric.worse * math.log(value))

    def _beside(self, metric: str, row: InstanceMinute, minute: int, level: float) -> None:
        levels = self._levels.setdefault(
            (metric, row.unit, row.stratum, row.region, row.bucket), {}
        )
        before = levels.pop(minute - DAY_MINUTES, None)
        levels[minute] = level
        if before is not None:
            entry = self._hours.setdefault(
                (metric, minute // HOUR_MINUTES, row.stratum), {}
            ).setdefault(row.unit, [0.0, 0.0])
            entry[0] += level - before
            entry[1] += 1

    def sums(self) -> dict[str, list[float]]:
        """By metric: squares of the hours' common change, the part that differences between
        instances explain, and the number of hours."""
        found: dict[str, list[float]] = {}
        for (metric, _, _), units in self._hours.items():
            means = [total / count for total, count in units.values() if count >= LEAST_MINUTES]
            if len(means) < 2:
                continue
            mean = math.fsum(means) / len(means)
            between = math.fsum((value - mean) ** 2 for value in means) / (len(means) - 1)
            entry = found.setdefault(metric, [0.0, 0.0, 0])
            entry[0] += mean * mean
            entry[1] += between / len(means)
            entry[2] += 1
        return found


def list_count_sums(comparison: Comparison) -> Iterator[tuple[str, list[float]]]:
    """Sums of the spread between instances for each count of a region and for the caches of starts,
    by metric."""
    for region in comparison.regions.values():
        for series, _ in region.entries:
            if isinstance(series, AffectedSeries) and hasattr(series.metric, "dispersion"):
                arms = [*series.baseline.values(), *series.candidate.values()]
                yield (
                    series.metric.name,
                    sum_dispersion(
                        [
                            [(one.all_events, one.all_calls) for one in units.values()]
                            for units in arms
                        ]
                    ),
                )
    for of_process, _ in comparison.process.entries:
        if isinstance(of_process, MissSeries):
            starts = [units for strata in of_process.starts.values() for units in strata.values()]
            each = [
                [sum_starts(list(instances.values())) for instances in units.values()]
                for units in starts
            ]
            yield (
                of_process.metric.name,
                sum_dispersion([[(one.misses, one.lookups) for one in units] for units in each]),
            )


def sum_dispersion(arms: Iterable[Sequence[tuple[int, int]]]) -> list[float]:
    """Squared deviations of the instances' events beyond chance, and their scale. The quotient is a
    squared coefficient of variation."""
    beyond = scale = 0.0
    for units in arms:
        events, calls = sum(found for found, _ in units), sum(of for _, of in units)
        if len(units) < 2 or events < LEAST_EVENTS:
            continue
        expected = [events * of / calls for _, of in units]
        apart = math.fsum(
            (found - mean) ** 2 for (found, _), mean in zip(units, expected, strict=True)
        )
        beyond += apart * len(units) / (len(units) - 1) - math.fsum(expected)
        scale += math.fsum(mean * mean for mean in expected)
    return [beyond, scale]


def pool_lessons(
    pairs: Sequence[Mapping[str, Mapping[str, Any]]], base: Settings = PRODUCTION
) -> dict[str, LearnedMetric]:
    """Pools the lessons of all pairs. A metric without a lesson is absent."""
    found: dict[str, LearnedMetric] = {}
    for metric in (*base.metrics, *base.process_metrics):
        lessons = [pair[metric.name] for pair in pairs if metric.name in pair]
        if lessons:
            found[metric.name] = LearnedMetric(
                len(lessons),
                _variance(lessons, metric),
                _day_variance(lessons, metric),
                _dispersion(lessons, metric),
                _prior_df(lessons),
            )
    return found


def _variance(
    lessons: Sequence[Mapping[str, Any]], metric: Metric
) -> tuple[tuple[int, float], ...]:
    prior = getattr(metric, "prior_variance", None)
    if not prior:
        return ()
    points = []
    for minutes in POINT_MINUTES:
        totals = [
            lesson["points"][str(minutes)]
            for lesson in lessons
            if str(minutes) in lesson.get("points", {})
        ]
        if len(totals) >= LEAST_PAIRS:
            variance = math.fsum(total[0] for total in totals) / math.fsum(
                total[1] for total in totals
            )
            points.append((minutes, max(variance, MIN_VARIANCE_SHARE * prior_at(prior, minutes))))
    return tuple(points)


def _prior_df(lessons: Sequence[Mapping[str, Any]]) -> int | None:
    """The degrees of freedom at the point that most pairs reached."""
    points: dict[str, list[tuple[float, float]]] = {}
    for lesson in lessons:
        for minutes, (squares, df) in lesson.get("points", {}).items():
            if squares > 0.0 and df > 0.0:
                points.setdefault(minutes, []).append((squares / df, df))
    most = max(points.values(), key=len, default=[])
    return fit_prior_df(most) if len(most) >= LEAST_PAIRS else None


def _day_variance(lessons: Sequence[Mapping[str, Any]], metric: Metric) -> float | None:
    sums = [lesson["days"] for lesson in lessons if "days" in lesson]
    assumed: float | None = getattr(metric, "day_variance", None)
    if len(sums) < LEAST_PAIRS or assumed is None:
        return None
    squares, explained, hours = (math.fsum(entry[place] for entry in sums) for place in range(3))
    return float(max((squares - explained) / hours, MIN_VARIANCE_SHARE * assumed))


def _dispersion(lessons: Sequence[Mapping[str, Any]], metric: Metric) -> float | None:
    sums = [lesson["counts"] for lesson in lessons if "counts" in lesson]
    assumed: float | None = getattr(metric, "dispersion", None)
    if len(sums) < LEAST_PAIRS or assumed is None:
        return None
    beyond, scale = (math.fsum(entry[place] for entry in sums) for place in range(2))
    return float(max(math.sqrt(max(beyond / scale, 0.0)), math.sqrt(MIN_VARIANCE_SHARE) * assumed))
