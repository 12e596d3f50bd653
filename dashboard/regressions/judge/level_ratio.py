"""Level ratio: running state of a compared level, as a stratified log ratio of instances.

Algorithm: cells (`matched_cell`) give differences of log levels from the baseline's mean. They are
averaged per instance; buckets have the weight of the baseline's traffic. One number per instance
enters the estimate with a moderated t-interval (`pooled_estimate`). Where the baseline has ended,
each host is compared with its own past (`before_after`).

A change counts if all of it is at least the smallest effect and its interval excludes zero.
The interval has a Bonferroni correction over comparisons and `doublings` of the data, for the
evaluation at each minute. It is calibrated, not proven.

Invariants:

- an instance counts from `instance_minutes` matched minutes;
- hold times never count a minute of overlapping bins twice;
- a change that buckets hide, or one instance accounts for, is not regressed.

Source: stratified comparison with empirical Bayes variance (Smyth, 2004).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

from dashboard.regressions.judge.before_after import (
    add_past,
    compare_with_past,
    fit_load_slope,
    sum_totals,
)
from dashboard.regressions.judge.buckets import separates
from dashboard.regressions.judge.inputs import CellKey, CellRows, Layout, Stratum
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.onset import History, find_level_onset
from dashboard.regressions.judge.pooled_estimate import (
    Estimate,
    Group,
    Total,
    Unit,
    combine,
    group,
    make_host_group,
    pool_change,
    pool_without_worst,
    prior_at,
)
from dashboard.regressions.judge.reading_state import CALM, Reading
from dashboard.regressions.judge.settings import RatioMetric, Settings


class RatioSeries:
    """One metric of one region, compared since the deployment."""

    def __init__(self, metric: RatioMetric, settings: Settings) -> None:
        self.metric = metric
        self.cells: dict[CellKey, MatchedCell] = {}
        self.matched_minutes = 0
        self.history = History(find_level_onset)
        self.recent: deque[tuple[int, float]] = deque()
        self._settings = settings
        self._strata: dict[Stratum, list[MatchedCell]] = {}
        self._effect = math.log1p(metric.smallest_effect)
        self._groups: list[Group] = []
        self._ages: list[int] = []
        self._estimate: Estimate | None = None
        self._covered = -1
        self._slope = 0.0
        self._recent_minutes = 0

    def add(self, minute: int, rows: Mapping[CellKey, CellRows]) -> int:
        """Adds a minute. Returns the number of matched minutes that it completes."""
        longest = 0
        weights: list[float] = []
        changes: list[float] = []
        if any(cell_rows.gone for cell_rows in rows.values()):
            self._slope = fit_load_slope(
                place for cell in self.cells.values() for place in cell.places.values()
            )
        for key, cell_rows in rows.items():
            cell = self._cell(key, cell_rows)
            if cell_rows.gone:
                closed = compare_with_past(
                    cell.places, minute, cell_rows, self.metric, self._slope, self._settings
                )
            else:
                closed = cell.add(minute, cell_rows, self.metric, self._settings)
                if cell_rows.loads:
                    add_past(cell.places, minute, cell_rows, self.metric)
            if closed is not None:
                span, change = closed
                longest = max(longest, span)
                weights.append(float(cell.traffic.baseline * span))
                changes.append(weights[-1] * change)
        if longest:
            longest = min(longest, minute - self._covered)
            self._covered = minute
            self._remember(minute, longest, math.fsum(changes) / math.fsum(weights))
            self._group()
        return longest

    def remember(self, minute: int, rows: Mapping[CellKey, CellRows]) -> None:
        """Adds a minute of the baseline before the deployment."""
        for key, cell_rows in rows.items():
            add_past(self._cell(key, cell_rows).places, minute, cell_rows, self.metric)

    def _cell(self, key: CellKey, rows: CellRows) -> MatchedCell:
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = MatchedCell(rows.traffic)
            self._strata.setdefault(key[0], []).append(cell)
            if self.metric.of_buckets:
                cell.bounds = next((row.bounds for row in (*rows.candidate, *rows.baseline)), None)
        return cell

    @property
    def one_sided(self) -> bool:
        """True if one version, or both, had calls without reporting this metric."""
        return any(cell.one_sided for cell in self.cells.values())

    @property
    def reported(self) -> bool:
        """True if a version reported the metric where both had calls."""
        return bool(self.matched_minutes) or any(
            cell.baseline_reports or cell.candidate_reports for cell in self.cells.values()
        )

    def expected(self) -> bool:
        """True if the metric was compared, or if the baseline reports it and the candidate does
        not. Call time is always expected."""
        if self.metric.leads or self.matched_minutes:
            return True
        return any(
            cell.baseline_reports and not cell.candidate_reports for cell in self.cells.values()
        )

    def _remember(self, minute: int, minutes: int, change: float) -> None:
        self.matched_minutes += minutes
        self.recent.append((minutes, minutes * change))
        self.history.add(minute, minutes, minutes * change)
        self._recent_minutes += minutes
        while self._recent_minutes - self.recent[0][0] >= self._settings.recent_minutes:
            self._recent_minutes -= self.recent.popleft()[0]

    def _group(self) -> None:
        groups: list[Group] = []
        ages: list[int] = []
        least = self._settings.instance_minutes
        for stratum, cells in self._strata.items():
            cand = average_differences(
                [(cell.traffic.baseline, cell.candidate) for cell in cells], least, ages
            )
            base = (
                average_differences(
                    [(cell.traffic.baseline, cell.baseline) for cell in cells], least, None
                )
                if cand
                else None
            )
            if base and cand:
                groups.append(group(stratum, base, cand))
            past = [(cell.traffic.baseline, self.past_of(cell)) for cell in cells if cell.places]
            hosts = average_differences(past, least, ages) if past else None
            if hosts:
                groups.append(make_host_group(stratum, hosts))
        self._groups, self._ages, self._estimate = groups, ages, None

    def past_of(self, cell: MatchedCell) -> dict[Unit, Total]:
        """The candidate's sums, by host, compared with the past of the same hosts in a cell."""
        return sum_totals(cell.places, self._slope)

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """Layouts of the comparison, most informative first."""
        weights: dict[Layout, float] = {}
        for part in self._groups:
            aligned = any(
                place.aligned
                for cell in self._strata[part.stratum]
                for place in cell.places.values()
                if place.minutes
            )
            how: Layout = (
                "side_by_side"
                if not part.same_hosts
                else "day_before"
                if aligned
                else "past_by_load"
            )
            weights[how] = weights.get(how, 0.0) + 1.0 / part.k
        return tuple(sorted(weights, key=lambda how: (-weights[how], how)))

    @property
    def estimate(self) -> Estimate | None:
        """The change with its error. Computed on demand, because most minutes show no change at
        all."""
        if self._estimate is None and self._groups:
            prior = prior_at(self.metric.prior_variance, sum(self._ages) / len(self._ages))
            self._estimate = combine(
                self._groups, prior, self._settings.prior_df, self.metric.day_variance
            )
        return self._estimate

    def recent_change(self) -> float | None:
        """The mean change over the last half hour of data; None before that much data exists."""
        if self._recent_minutes < self._settings.recent_minutes:
            return None
        return math.fsum([entry[1] for entry in self.recent]) / self._recent_minutes

    def read(self, comparisons: int, closely: bool) -> Reading:
        """The current reading. With `closely`, the most recent data is read even if nothing is
        regressed."""
        if not self._groups:
            return CALM
        large = pool_change(self._groups) >= self._effect
        if not large and not closely:
            return CALM
        leaning = large and self._exceeds(self._settings.watch_alpha, comparisons)
        sure = leaning and self._exceeds(self._settings.roll_back_alpha, comparisons)
        narrow = leaning and (self.is_single_instance or self.alone)
        recent = self.recent_change()
        seen = not (leaning and self.is_within_bucket)
        return Reading(
            regressed=sure and seen and not narrow,
            leaning=leaning and seen,
            recovered=recent is not None and recent < self._effect / 2,
            relapsed=recent is not None and recent >= self._effect and seen,
            narrow=narrow and seen,
        )

    def lasting(self, reading: Reading) -> Reading:
        """The reading if most of the last half hour shows the change, else a calm one: one
        compilation moves the mean for hours."""
        shown = sum(
            minutes for minutes, change in self.recent if change >= minutes * self._effect / 2
        )
        if 4 * shown >= 3 * max(self._recent_minutes, self._settings.matched_minutes):
            return reading
        return reading._replace(
            regressed=False, leaning=False, recovered=True, relapsed=False, narrow=False
        )

    @property
    def is_within_bucket(self) -> bool:
        """True if buckets hide the change: without the cells whose levels lie in one bucket, the
        remaining change is below the smallest effect."""
        if all(cell.bounds is None for cell in self.cells.values()):
            return False
        shown, all_minutes, hides = 0.0, 0, False
        for cell in self.cells.values():
            totals = [*cell.candidate.values(), *self.past_of(cell).values()]
            minutes = sum(total.minutes for total in totals)
            if not minutes:
                continue
            level, difference = (
                math.fsum(getattr(total, name) for total in totals)
                for name in ("level", "difference")
            )
            base, candidate = (
                self.metric.worse * value / minutes for value in (level - difference, level)
            )
            all_minutes += minutes
            if cell.bounds is None or separates(base, candidate, cell.bounds):
                shown += difference
            else:
                hides = True
        return hides and shown < self._effect * all_minutes

    @property
    def is_single_instance(self) -> bool:
        """True if the candidate has a single instance with too few minutes to separate its version
        from its machine's neighbours."""
        return (
            self.matched_minutes < self._settings.lone_minutes
            and sum(len(part.candidate) for part in self._groups) == 1
        )

    @property
    def alone(self) -> bool:
        """True if one of several instances accounts for nearly all of the change. The cause is then
        more often its machine than its version."""
        rest = pool_without_worst(self._groups)
        return rest is not None and rest < self._settings.others_share * pool_change(self._groups)

    def _exceeds(self, alpha: float, comparisons: int) -> bool:
        estimate = self.estimate
        return estimate is not None and estimate.delta > estimate.margin(
            alpha / (2 * comparisons * self.metric.doublings)
        )

    def bound(self) -> float | None:
        """The largest change that the data does not rule out, on the log scale; None without an
        estimate."""
        estimate = self.estimate
        return estimate.delta + estimate.margin(self._settings.healthy_alpha) if estimate else None

    def tolerable(self) -> bool:
        """True if that bound is below the tolerated change."""
        bound = self.bound()
        return (
            bound is not None
            and bound < math.log1p(self.metric.tolerated)
            and not self.is_within_bucket
        )


def average_differences(
    cells: list[tuple[int, dict[Unit, Total]]], least: int, ages: list[int] | None
) -> dict[Unit, float]:
    """The mean difference per instance with at least `least` matched minutes. Buckets are weighted
    by the baseline's traffic."""
    if len(cells) == 1:
        found = {
            unit: total.difference / total.minutes
            for unit, total in cells[0][1].items()
            if total.minutes >= least
        }
        if ages is not None:
            ages += [total.minutes for total in cells[0][1].values() if total.minutes >= least]
        return found
    sums: dict[Unit, list[float]] = {}
    for weight, totals in cells:
        for unit, total in totals.items():
            entry = sums.get(unit)
            if entry is None:
                entry = sums[unit] = [0.0, 0.0, 0.0]
            entry[0] += weight * total.difference
            entry[1] += weight * total.minutes
            if total.minutes > entry[2]:
                entry[2] = total.minutes
    if ages is not None:
        ages += [int(entry[2]) for entry in sums.values() if entry[2] >= least]
    return {unit: entry[0] / entry[1] for unit, entry in sums.items() if entry[2] >= least}
