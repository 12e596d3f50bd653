"""Level ratio: running state of a compared level, as a stratified log ratio of instances.

Algorithm: cells (`matched_cell`) give differences of log levels from the baseline's mean, averaged
per instance. What the past of an instance's node explains is subtracted (`node_past`). One number
per instance enters the estimate with a moderated t-interval (`pooled_estimate`). Where the baseline
has ended, each host is compared with its own past (`before_after`).

Invariants:

- an instance counts from `instance_minutes` matched minutes;
- hold times never count a minute of overlapping bins twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dashboard.regressions.judge.before_after import Adjustment, fit_load_slope, sum_totals
from dashboard.regressions.judge.bucketed_levels import hides_change
from dashboard.regressions.judge.cohorts import Cohort, CohortIndex, is_worse
from dashboard.regressions.judge.day_history import DayShifts
from dashboard.regressions.judge.inputs import CellKey, CellRows, Layout, Stratum
from dashboard.regressions.judge.instance_means import average_differences
from dashboard.regressions.judge.layouts import rank_layouts
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.node_groups import Levels, group_nodes
from dashboard.regressions.judge.onset import History, find_level_onset
from dashboard.regressions.judge.pool_groups import (
    group_pool,
    read_arms,
    read_pool,
    share_days,
)
from dashboard.regressions.judge.pooled_estimate import (
    Estimate,
    Group,
    Total,
    Unit,
    combine,
    make_host_group,
    pool_change,
    prior_at,
    regroup,
)
from dashboard.regressions.judge.recent_changes import RecentChanges
from dashboard.regressions.judge.serial_noise import (
    HOUR_MINUTES,
    SerialNoise,
)
from dashboard.regressions.judge.settings import RatioMetric, Settings
from dashboard.regressions.judge.trailing_window import EARLIER_MINUTES, Snapshots

TEST_INTERVAL_MINUTES = 5
"""Minutes between two evaluations of trailing windows and of single cohorts."""
EARLY_MINUTES = 60
"""First matched minutes, which show a change that was there from the start."""


class RatioSeries:
    """One metric of one region since the deployment."""

    def __init__(
        self, metric: RatioMetric, settings: Settings, days: DayShifts | None = None
    ) -> None:
        self.metric, self.settings, self.days = metric, settings, days
        self.effect = math.log1p(metric.smallest_effect)
        self.growth = metric.prior_variance[0][1] / metric.prior_variance[-1][1]
        """Growth of the information over a comparison."""
        self.windows = settings.trailing_minutes
        self.cells: dict[CellKey, MatchedCell] = {}
        self.groups: list[Group] = []
        self.matched_minutes = 0
        self.history = History(find_level_onset)
        self.recent = RecentChanges(settings.recent_minutes, self.effect)
        self.early_change = 0.0
        """The mean of the first EARLY_MINUTES."""
        self.trailing: dict[int, Estimate] = {}
        """Trailing windows that are worse, by length."""
        self.cohorts: dict[Cohort, Estimate] = {}
        """All cohorts, if any is worse."""
        self._index = CohortIndex()
        self._strata: dict[Stratum, list[MatchedCell]] = {}
        self._ages: list[int] = []
        self._estimate: Estimate | None = None
        self._covered = -1
        self.slope = 0.0
        """The slope of log level over log load, in the past of all hosts."""
        assumed = metric.own_share * prior_at(metric.prior_variance, HOUR_MINUTES)
        self.noise = SerialNoise(assumed, metric.prior_df)
        self._snapshots = Snapshots(settings.trailing_minutes)
        self._tested_at = -TEST_INTERVAL_MINUTES

    def add(self, minute: int, rows: Mapping[CellKey, CellRows]) -> int:
        """Adds a minute. Returns the number of completed matched minutes."""
        longest = 0
        weights: list[float] = []
        changes: list[float] = []
        if any(cell_rows.gone for cell_rows in rows.values()):
            self.slope = fit_load_slope(
                place for cell in self.cells.values() for place in cell.places.values()
            )
        for key, cell_rows in rows.items():
            cell = self._cell(key, cell_rows)
            if cell_rows.gone:
                adjust = Adjustment(self.slope, self.days.expect(minute) if self.days else 0.0)
                closed = cell.compare_with_past(
                    minute, cell_rows, self.metric, adjust, self.settings
                )
            else:
                closed = cell.add(minute, cell_rows, self.metric, self.settings)
                if cell_rows.loads:
                    cell.add_past(minute, cell_rows, self.metric)
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
            if self._snapshots.take(minute, self.cells.values()):
                self._measure_noise(minute)
            if minute - self._tested_at >= TEST_INTERVAL_MINUTES:
                self._tested_at = minute
                self.trailing = self._estimate_windows(minute)
                self.cohorts = self._estimate_cohorts()
        return longest

    def remember(self, minute: int, rows: Mapping[CellKey, CellRows]) -> None:
        """Adds a minute of the baseline before the deployment."""
        for key, cell_rows in rows.items():
            cell = self._cell(key, cell_rows)
            cell.past.add(minute, cell_rows.baseline, self.metric, self.settings.bin_calls)
            if cell_rows.loads:
                cell.add_past(minute, cell_rows, self.metric)

    def _cell(self, key: CellKey, rows: CellRows) -> MatchedCell:
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = MatchedCell(rows.traffic, self.noise)
            self._strata.setdefault(key[0], []).append(cell)
            if self.metric.of_buckets:
                cell.bounds = next((row.bounds for row in (*rows.candidate, *rows.baseline)), None)
        return cell

    @property
    def one_sided(self) -> bool:
        """True if a version had calls without reporting this metric."""
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

    def _measure_noise(self, minute: int) -> None:
        for stratum, base, cand in self._snapshots.list_hours(minute, self._strata):
            if len(base) > 1:
                self.noise.add(stratum, base, 1.0 - 1.0 / len(base))
            elif base:
                self.noise.add(stratum, cand, 2.0)

    def _remember(self, minute: int, minutes: int, change: float) -> None:
        if self.matched_minutes < EARLY_MINUTES:
            share = minutes / (self.matched_minutes + minutes)
            self.early_change += share * (change - self.early_change)
        self.matched_minutes += minutes
        self.recent.add(minutes, change)
        self.history.add(minute, minutes, minutes * change)

    def _group(self) -> None:
        ages: list[int] = []
        self.groups = self._groups_of(self._strata, ages)
        self._ages, self._estimate = ages, None

    def _groups_of(
        self, strata: Mapping[Stratum, list[MatchedCell]], ages: list[int]
    ) -> list[Group]:
        """The groups of these cells. Collects the ages of the candidate's instances."""
        least = self.settings.instance_minutes
        side_by_side: dict[Stratum, tuple[Levels, Levels]] = {}
        of_past: list[Group] = []
        for stratum, cells in strata.items():
            both = read_arms(cells, self.slope, least, ages)
            if both:
                side_by_side[stratum] = both
            elif pool := group_pool(stratum, cells, self.slope, least, ages):
                of_past.append(pool)
            past = [
                (cell.traffic.baseline, sum_totals(cell.places, self.slope))
                for cell in cells
                if cell.places
            ]
            hosts = average_differences(past, least, ages) if past else None
            if hosts:
                of_past.append(make_host_group(stratum, hosts))
        groups = group_nodes(side_by_side, strata, self.metric, self.settings)
        return [share_days(part, strata[part.stratum], self.slope) for part in groups] + of_past

    def past_of(self, cell: MatchedCell) -> dict[Unit, Total]:
        """The candidate's sums in a cell that were compared with the past: of its hosts, by host,
        and of the pool, by instance."""
        return {**sum_totals(cell.places, self.slope), **read_pool(cell, self.slope)}

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """Layouts of the comparison, most informative first."""
        return rank_layouts(self.groups, self._strata, self.days, self.metric.controlled)

    @property
    def estimate(self) -> Estimate | None:
        """The change with its error. Computed on demand: most minutes show no change."""
        if self._estimate is None and self.groups:
            self._estimate = self._combine(self.groups, self._ages)
        return self._estimate

    def estimate_without(self, stratum: Stratum, unit: Unit) -> Estimate | None:
        """The change without one instance; None without another one."""
        groups = []
        for part in self.groups:
            if part.stratum == stratum and unit in part.candidate:
                rest = {name: value for name, value in part.candidate.items() if name != unit}
                if rest:
                    groups.append(regroup(part, rest))
            else:
                groups.append(part)
        return self._combine(groups, self._ages) if groups else None

    def _combine(self, groups: list[Group], ages: list[int]) -> Estimate:
        age = sum(ages) / len(ages)
        prior = prior_at(self.metric.prior_variance, age) + self.noise.excess(age)
        between_days = self.days.variance if self.days else self.metric.day_variance
        return combine(groups, prior, self.metric.prior_df, between_days)

    def _estimate_windows(self, minute: int) -> dict[int, Estimate]:
        """The trailing windows that are worse, if the last half hour is worse at all."""
        recent = self.recent.mean()
        if recent is None or recent < self.effect / 2:
            return {}
        found = {}
        for window in self.windows:
            groups = self._snapshots.groups(minute, window, self._strata)
            if groups and pool_change(groups) >= self.effect:
                # The time before is a mean of its own, over fewer minutes at first.
                earlier = max(EARLIER_MINUTES, self.matched_minutes - window)
                variance = self.noise.window_variance(window) * (1.0 + window / earlier)
                found[window] = combine(groups, variance, self.metric.prior_df)
        return found

    def _estimate_cohorts(self) -> dict[Cohort, Estimate]:
        """The estimates of all cohorts, if any of them is worse."""
        found: dict[Cohort, Estimate] = {}
        cohorts = self._index.find(self.cells)
        if not any(
            is_worse(cells, self.past_of, self.effect)
            for strata in cohorts.values()
            for cells in strata.values()
        ):
            return found
        for name, strata in cohorts.items():
            ages: list[int] = []
            groups = self._groups_of(strata, ages)
            if groups:
                found[name] = self._combine(groups, ages)
        return found

    @property
    def is_within_bucket(self) -> bool:
        """True if buckets hide the change: without the cells whose levels lie in one bucket, the
        remaining change is below the smallest effect."""
        if all(cell.bounds is None for cell in self.cells.values()):
            return False
        return hides_change(self.cells.values(), self.past_of, self.metric.worse, self.effect)

    def bound(self) -> float | None:
        """The largest change that is not ruled out, on the log scale; None without an estimate."""
        estimate = self.estimate
        return estimate.delta + estimate.margin(self.settings.healthy_alpha) if estimate else None

    def contradicts(self) -> bool:
        """True if the change is at least the smallest effect, or a bucket hides it."""
        estimate = self.estimate
        return estimate is None or estimate.delta >= self.effect or self.is_within_bucket

    def tolerable(self) -> bool:
        """True if that bound is below the tolerated change."""
        bound = self.bound()
        return (
            bound is not None
            and bound < math.log1p(self.metric.tolerated)
            and not self.is_within_bucket
        )
