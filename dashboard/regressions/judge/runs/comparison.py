"""Run comparison: the verdict on a version whose runs are short jobs that follow the baseline's.

Algorithm: each level and count of each region is compared over runs (`level_change`,
`count_change`). The error budget is divided by the tests and by two looks. All tests are one-sided,
because only a change for the worse raises a verdict. The levels of a region count as two tests,
because call time, throughput and p99 move together; a count without an event cannot be wrong and is
no test.

- ROLL BACK: a hard metric is worse by its smallest effect, with confidence, in at least
  ROLL_BACK_RUNS runs, and no single run accounts for the change; or in one run that is above every
  run of the baseline by the same margin.
- WATCH: the same with the confidence of WATCH; or one of several runs is odd; or too few of the
  calls can be compared.
- HEALTHY: every hard metric rules out the tolerated change.
- NOT ENOUGH DATA: everything else, with the number of missing runs.

One run that is far slower than the others hides itself, because it widens the interval of all. So
the call time of each run is also compared alone, with the variance of the baseline. A run is odd if
it is worse by the smallest effect and above every run of the baseline. With `n` runs, its tail is
that of WATCH divided by `n`. These tests are not part of the division above: the bound for call
time is twice its part, and simulation shows the rate of false WATCH (decision 0130).

Invariants: the verdict depends on the runs alone, not on the time of the evaluation; there is no
hold time, because a run is one observation; at least LEAST_RUNS runs of the baseline are needed.

Source: the procedure is this project's own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from dashboard.regressions.judge.call_metrics import wall_middle
from dashboard.regressions.judge.region_state import decides
from dashboard.regressions.judge.runs.count_change import CountChange, compare_counts
from dashboard.regressions.judge.runs.level_change import LevelChange, compare_levels, split_by_run
from dashboard.regressions.judge.runs.run import (
    Run,
    SteadyRun,
    assign_sessions,
    key_of,
    take_steady_part,
)
from dashboard.regressions.judge.settings import RatioMetric, Settings
from dashboard.regressions.judge.verdict_policy import Verdict

LEAST_RUNS = 5
"""Runs of earlier versions that are needed."""
ROLL_BACK_RUNS = 2
"""Runs of the candidate from which a change counts without being above every earlier run."""
RUN_LOOKS = 2
"""Number of looks that share the error budget. A later look contains the minutes of the earlier
ones, so all of them count as two."""
LEVEL_TESTS = 2

RunReason = Literal[
    "", "too_few_runs", "run_in_progress", "run_too_short", "no_common_stratum", "not_within_bound"
]
Change = LevelChange | CountChange


@dataclass(frozen=True)
class RunCoverage:
    """The candidate's calls: all, and those in a region, stratum and bucket of the baseline."""

    calls: int
    compared: int

    @property
    def share(self) -> float | None:
        """The compared share; None without a call."""
        return self.compared / self.calls if self.calls else None


class RunComparison:
    """The runs of a version, compared with runs of earlier versions."""

    def __init__(
        self,
        candidate: Sequence[Run],
        baseline: Sequence[Run],
        settings: Settings,
        *,
        same_host: bool = False,
    ) -> None:
        self.settings = settings
        self.same_host = same_host
        """True if only runs on the candidate's hosts are in the baseline."""
        self.ended = all(run.ended for run in candidate)
        self.candidate = [found for run in candidate if (found := take_steady_part(run))]
        # Jobs have phases, so both sides are compared at the same ages.
        reach = max((steady.age for steady in self.candidate), default=None)
        self.baseline = [found for run in baseline if (found := take_steady_part(run, reach))]
        self._sessions = assign_sessions((*candidate, *baseline))

    @cached_property
    def changes(self) -> list[Change]:
        """Every metric with data of both versions, by region."""
        runs = [*self.baseline, *self.candidate]
        names = sorted({row.region for steady in self.candidate for row in steady.rows})
        found: list[Change] = []
        for name in names:
            for metric in self.settings.metrics:
                change = (
                    compare_levels(metric, name, runs, self._sessions, self.settings)
                    if isinstance(metric, RatioMetric)
                    else compare_counts(metric, name, runs)
                )
                found += [change] if change else []
        return found

    @cached_property
    def judged(self) -> list[Change]:
        """The changes that count for the verdict, with enough runs of the baseline."""
        return [
            change
            for change in self.changes
            if self.is_judged(change) and change.baseline_runs >= LEAST_RUNS
        ]

    def is_judged(self, change: Change) -> bool:
        """True if the metric decides in its region: GPU time replaces wall time if calls return
        before the device is done."""
        return decides(change.metric, self._stand_ins.get(change.region, {}))

    @cached_property
    def _stand_ins(self) -> dict[str, dict[str, str]]:
        """Replaced metrics with their replacements, by region."""
        sampled: Counter[str] = Counter()
        longer: Counter[str] = Counter()
        for steady in (*self.baseline, *self.candidate):
            for row in steady.rows:
                if row.gpu_p50 is not None and row.gpu_count >= self.settings.gpu_samples:
                    middle = wall_middle(row)
                    sampled[row.region] += 1
                    longer[row.region] += middle is None or row.gpu_p50 > middle
        found: dict[str, dict[str, str]] = {}
        for change in self.changes:
            name, replaced = change.region, getattr(change.metric, "instead_of", None)
            if replaced and 2 * longer[name] > sampled[name]:
                found.setdefault(name, {})[replaced] = change.metric.name
        return found

    @cached_property
    def tests(self) -> int:
        """Number of tests that share the error budget."""
        found = 0
        for name in {change.region for change in self.judged}:
            here = [change for change in self.judged if change.region == name]
            levels = sum(isinstance(change, LevelChange) for change in here)
            events = sum(
                isinstance(change, CountChange)
                and bool(change.rate.events or change.rate.base_events)
                for change in here
            )
            found += min(levels, LEVEL_TESTS) + events
        return max(found, 1)

    def tail(self, alpha: float) -> float:
        """The part of an error budget in one test. Tests are one-sided."""
        return alpha / (self.tests * RUN_LOOKS)

    def leans(self, change: Change) -> bool:
        """True if the change has the confidence of WATCH, or one of several runs is odd."""
        tail = self.tail(self.settings.watch_alpha)
        return self._exceeds(change, tail) or self._has_odd_run(change, tail)

    def _has_odd_run(self, change: Change, tail: float) -> bool:
        if not isinstance(change, LevelChange) or not change.metric.leads or change.delta <= 0.0:
            return False
        singles = split_by_run(change, self._sessions)
        return len(singles) > 1 and any(
            single.baseline_runs >= LEAST_RUNS
            and single.is_beyond_every_run(0.0)
            and self._exceeds(single, tail / len(singles))
            for single in singles
        )

    def is_regressed(self, change: Change) -> bool:
        """True if the change has the confidence of ROLL BACK, regardless of the number of runs."""
        return self._exceeds(change, self.tail(self.settings.roll_back_alpha))

    def _exceeds(self, change: Change, tail: float) -> bool:
        if isinstance(change, CountChange):
            return change.rises(tail)
        return (
            not change.is_within_bucket
            and change.delta >= math.log1p(change.metric.smallest_effect)
            and change.delta > change.margin(tail)
        )

    def asks_for_roll_back(self, change: Change) -> bool:
        """True if a hard metric is regressed in enough runs, or beyond every earlier run."""
        if not change.metric.hard or not self.is_regressed(change):
            return False
        margin = self.tail(self.settings.roll_back_alpha)
        beyond = (
            change.is_beyond_every_run(change.margin(margin))
            if isinstance(change, LevelChange)
            else change.is_beyond_every_run()
        )
        alone = isinstance(change, LevelChange) and change.is_alone
        return beyond or (change.candidate_runs >= ROLL_BACK_RUNS and not alone)

    def is_tolerable(self, change: Change) -> bool:
        """True if the data rules out any change above the tolerated one."""
        alpha = self.settings.healthy_alpha
        if isinstance(change, CountChange):
            return change.is_tolerable(alpha)
        bound = change.delta + change.margin(alpha)
        return bound < math.log1p(change.metric.tolerated) and not change.is_within_bucket

    @cached_property
    def coverage(self) -> RunCoverage:
        """The candidate's compared calls."""
        known = {key_of(row) for steady in self.baseline for row in steady.rows}
        calls = compared = 0
        for steady in self.candidate:
            for row in steady.rows:
                calls += row.calls
                compared += row.calls * (key_of(row) in known)
        return RunCoverage(calls, compared)

    @property
    def is_thin(self) -> bool:
        """True if too few of the candidate's calls can be compared."""
        share = self.coverage.share
        return share is not None and 0.0 < share < self.settings.comparable_share

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict of the runs."""
        if any(self.asks_for_roll_back(change) for change in self.judged):
            return "roll_back"
        if any(self.leans(change) for change in self.judged):
            return "watch"
        if self.reason not in ("", "not_within_bound"):
            return "not_enough_data"
        if self.is_thin:
            return "watch"
        return "not_enough_data" if self.reason else "healthy"

    @cached_property
    def reason(self) -> RunReason:
        """The first missing piece of data; empty if nothing is missing for HEALTHY."""
        if len(self.baseline) < LEAST_RUNS:
            return "too_few_runs"
        if not self.candidate:
            return "run_too_short" if self.ended else "run_in_progress"
        if not self.coverage.compared:
            return "no_common_stratum"
        levels = [change for change in self.changes if isinstance(change, LevelChange)]
        leading = [change for change in levels if change.metric.leads and self.is_judged(change)]
        if not leading:
            return "run_too_short"
        if max(change.baseline_runs for change in leading) < LEAST_RUNS:
            return "too_few_runs"
        hard = [change for change in self.judged if change.metric.hard]
        well = all(self.is_tolerable(change) for change in hard) and not self.is_one_sided
        return "" if well else "not_within_bound"

    @property
    def is_one_sided(self) -> bool:
        """True if the baseline reports a hard level in a region and the candidate does not."""
        return any(
            _reports(metric, change.region, self.baseline)
            and not _reports(metric, change.region, self.candidate)
            for change in self.judged
            if change.metric.leads
            for metric in self.settings.metrics
            if isinstance(metric, RatioMetric) and metric.hard and not metric.muted
            if not metric.instead_of
        )

    @property
    def compared_runs(self) -> int:
        """Number of the baseline's runs that some level was compared with."""
        return max(
            (change.baseline_runs for change in self.changes if isinstance(change, LevelChange)),
            default=0,
        )

    @property
    def missing_runs(self) -> int:
        """Number of runs of earlier versions that are missing."""
        known = self.compared_runs if self.candidate and self.changes else len(self.baseline)
        return max(LEAST_RUNS - known, 0)

    @property
    def versions(self) -> tuple[str, ...]:
        """The earlier versions, newest first."""
        runs = sorted(self.baseline, key=lambda steady: -steady.run.first_minute)
        return tuple(dict.fromkeys(steady.run.version for steady in runs))


def _reports(metric: RatioMetric, region: str, runs: Sequence[SteadyRun]) -> bool:
    """True if a run has this level in the region."""
    return any(
        row.region == region and metric.samples(row) > 0 and metric.value(row) is not None
        for steady in runs
        for row in steady.rows
    )
