"""Process counts: the running state of rare events of processes: recompile storms, and caches that
no longer serve."""

from __future__ import annotations

import math
from typing import NamedTuple

from dashboard.regressions.judge.error_budget import BudgetVerdict, ErrorBudget, find_tail
from dashboard.regressions.judge.inputs import Arm, Stratum
from dashboard.regressions.judge.instance_windows import Instances, InstanceWindow, InstanceWindows
from dashboard.regressions.judge.pooled_estimate import Unit, t_quantile
from dashboard.regressions.judge.process.comparison import MIN_GROWTH, Strata, Units
from dashboard.regressions.judge.process.inputs import InstanceStart
from dashboard.regressions.judge.process.metrics import MissShareMetric, StormMetric
from dashboard.regressions.judge.reading_state import CALM, Reading
from dashboard.regressions.judge.settings import Settings


class StormSeries:
    """Instances with more events over the last minutes than a settled process has."""

    def __init__(self, metric: StormMetric, settings: Settings) -> None:
        self.metric = metric
        self.windows: dict[Arm, InstanceWindows] = {"baseline": {}, "candidate": {}}
        self.matched_minutes = 0
        self.judged: Instances = []
        self.affected: Instances = []
        self.baseline_judged: Instances = []
        self.baseline_affected: Instances = []

    def add(self, minute: int, strata: Strata) -> int:
        """Adds a minute. Returns 1 if instances of both arms could be judged, else 0."""
        for stratum, arms in strata.items():
            self._take("baseline", stratum, minute, arms.baseline)
            self._take("candidate", stratum, minute, arms.candidate)
        if not any(arms.candidate for arms in strata.values()):
            return 0
        self.baseline_judged, self.baseline_affected = self._survey("baseline", minute)
        known = {stratum for stratum, _ in self.baseline_judged}
        judged, affected = self._survey("candidate", minute)
        self.judged = [key for key in judged if key[0] in known]
        self.affected = [key for key in affected if key[0] in known]
        self.matched_minutes += bool(self.judged)
        return int(bool(self.judged))

    def _take(self, arm: Arm, stratum: Stratum, minute: int, units: Units) -> None:
        windows = self.windows[arm].setdefault(stratum, {})
        for unit, rows in units.items():
            counts = [self.metric.events(row) for row in rows if row.age >= self.metric.from_minute]
            events = [count for count in counts if count is not None]
            if events:
                # Ranks in lockstep recompile together. The rank with the most events represents the
                # job.
                windows.setdefault(unit, InstanceWindow()).add(minute, 1, max(events))

    def _survey(self, arm: Arm, minute: int) -> tuple[Instances, Instances]:
        judged, affected = [], []
        metric = self.metric
        for stratum, units in self.windows[arm].items():
            for unit, window in units.items():
                window.drop_until(minute - metric.window_minutes)
                if window.calls >= metric.least_minutes:
                    judged.append((stratum, unit))
                    if (
                        window.events >= metric.least
                        and 60 * window.events > metric.threshold * window.calls
                    ):
                        affected.append((stratum, unit))
        return judged, affected

    def per_hour(self, arm: Arm) -> float | None:
        """Events per hour and instance over the last minutes; None without a minute of data."""
        found = [window for units in self.windows[arm].values() for window in units.values()]
        minutes = sum(window.calls for window in found)
        return 60 * sum(window.events for window in found) / minutes if minutes else None

    def read(self, budget: ErrorBudget, closely: bool) -> Reading:
        """The reading of the rule. It needs no statistics, so both levels of certainty agree."""
        regressed = bool(self.affected) and not self.baseline_affected
        return Reading(regressed=regressed, leaning=regressed) if regressed else CALM

    def undecided(self) -> bool:
        """True if both versions are affected and the candidate's rise is too large to ignore."""
        base, cand = self.per_hour("baseline") or 0.0, self.per_hour("candidate") or 0.0
        matters = cand >= self.metric.times * base and cand - base >= self.metric.points
        return bool(self.affected) and bool(self.baseline_affected) and matters

    def bound(self) -> float | None:
        """None: the rule has no interval."""
        return None

    def expected(self) -> bool:
        """False: a calm rule holds no verdict back."""
        return False

    def contradicts(self) -> bool:
        """True if an earlier HEALTHY no longer holds."""
        return not self.tolerable()

    def tolerable(self) -> bool:
        """True: a calm rule holds no verdict back."""
        return True


class MissComparison(NamedTuple):
    """Cache service of both arms where both started: shares of seconds, the log ratio of misses,
    and whether the rise matters."""

    baseline: float
    candidate: float
    log_ratio: float
    error: float
    matters: bool
    affected: int
    baseline_instances: int
    candidate_instances: int
    strata: int


class MissSeries:
    """The share of each instance's first compilations that came from a cache."""

    def __init__(self, metric: MissShareMetric, settings: Settings) -> None:
        self.metric = metric
        self.starts: dict[Arm, dict[Stratum, dict[Unit, dict[str, InstanceStart]]]] = {
            "baseline": {},
            "candidate": {},
        }
        self.matched_minutes = 0
        self._settings = settings
        self._missed: MissComparison | None = None

    def add(self, minute: int, strata: Strata) -> int:
        """Adds a minute. Returns 1 if starts of both arms can be compared, else 0."""
        fresh = False
        for stratum, arms in strata.items():
            fresh |= self._take("baseline", stratum, arms.baseline)
            fresh |= self._take("candidate", stratum, arms.candidate)
        if fresh:
            self._missed = compare_misses(
                self.starts["baseline"], self.starts["candidate"], self.metric
            )
        if self._missed is None or not any(arms.candidate for arms in strata.values()):
            return 0
        self.matched_minutes += 1
        return 1

    def _take(self, arm: Arm, stratum: Stratum, units: Units) -> bool:
        known, fresh = self.starts[arm].setdefault(stratum, {}), False
        for unit, rows in units.items():
            for row in rows:
                start = row.start
                if (
                    start is not None
                    and start.hit_seconds + start.miss_seconds > 0.0
                    and start.hits + start.misses
                ):
                    of_unit = known.setdefault(unit, {})
                    earlier = of_unit.get(str(row.instance))
                    # Of two records of one start, the more complete one counts, in any order of
                    # arrival.
                    if earlier is None or fullness(start) > fullness(earlier):
                        of_unit[str(row.instance)] = start
                        fresh = True
        return fresh

    @property
    def missed(self) -> MissComparison | None:
        """The comparison of both arms' caches; None while an arm has no start."""
        return self._missed

    def read(self, budget: ErrorBudget, closely: bool) -> Reading:
        """Regressed if the share of seconds rose by at least the smallest effect and the misses
        exceed chance."""
        found = self._missed
        if found is None or not found.matters:
            return CALM
        leaning = self._exceeds(found, budget, "watch")
        return Reading(
            regressed=leaning and self._exceeds(found, budget, "roll_back"),
            leaning=leaning,
        )

    def _exceeds(self, found: MissComparison, budget: ErrorBudget, verdict: BudgetVerdict) -> bool:
        tail = find_tail(budget.part(self.metric, verdict), MIN_GROWTH)
        return found.log_ratio > t_quantile(self._settings.prior_df, tail) * found.error

    def bound(self) -> float | None:
        """None: HEALTHY asks for no bound of counts."""
        return None

    def expected(self) -> bool:
        """False: a calm count holds no verdict back."""
        return False

    def contradicts(self) -> bool:
        """True if an earlier HEALTHY no longer holds."""
        return not self.tolerable()

    def tolerable(self) -> bool:
        """True: a calm count holds no verdict back."""
        return True


class CacheSums(NamedTuple):
    """Sums over several instances."""

    misses: int
    lookups: int
    miss_seconds: float
    seconds: float

    @property
    def share(self) -> float:
        """The share of compile seconds that no cache served."""
        return self.miss_seconds / self.seconds


def fullness(start: InstanceStart) -> tuple[int, int, float, float]:
    """Sort key: completeness of the record of a start."""
    return start.hits + start.misses, start.misses, start.miss_seconds, start.hit_seconds


def sum_starts(starts: list[InstanceStart]) -> CacheSums:
    """The sums, independent of order."""
    misses, miss_seconds = (
        sum(start.misses for start in starts),
        math.fsum(start.miss_seconds for start in starts),
    )
    hit_seconds = math.fsum(start.hit_seconds for start in starts)
    return CacheSums(
        misses,
        misses + sum(start.hits for start in starts),
        miss_seconds,
        miss_seconds + hit_seconds,
    )


Starts = dict[Stratum, dict[Unit, dict[str, InstanceStart]]]


def compare_misses(
    baseline: Starts, candidate: Starts, metric: MissShareMetric
) -> MissComparison | None:
    """Compares the candidate's misses with the misses expected at the baseline's rate for as many
    lookups, by stratum (indirect standardization). None if no stratum has starts of both arms."""
    before, after, expected, expected_seconds = [], [], [], []
    base_units = cand_units = affected = 0
    for stratum, units in candidate.items():
        of_baseline = baseline.get(stratum) or {}
        if not units or not of_baseline:
            continue
        base = sum_starts([start for of_unit in of_baseline.values() for start in of_unit.values()])
        each = [sum_starts(list(instances.values())) for instances in units.values()]
        before.append(base)
        after += each
        expected += [one.lookups * base.misses / base.lookups for one in each]
        expected_seconds += [one.seconds * base.share for one in each]
        affected += sum(has_risen(one.share, base.share, metric) for one in each)
        base_units, cand_units = base_units + len(of_baseline), cand_units + len(units)
    if not after:
        return None
    seconds = math.fsum(one.seconds for one in after)
    base_share, share = (
        math.fsum(expected_seconds) / seconds,
        math.fsum(one.miss_seconds for one in after) / seconds,
    )
    misses, base_misses = sum(one.misses for one in after), sum(one.misses for one in before)
    spread = metric.dispersion**2 * (1 / cand_units + 1 / base_units)
    variance = 1 / (misses + 0.5) + 1 / (base_misses + 0.5) + spread
    ratio = math.log((misses + 0.5) / (math.fsum(expected) + 0.5))
    matters = misses >= metric.least and has_risen(share, base_share, metric)
    return MissComparison(
        base_share,
        share,
        ratio,
        math.sqrt(variance),
        matters,
        affected,
        base_units,
        cand_units,
        len(before),
    )


def has_risen(share: float, base: float, metric: MissShareMetric) -> bool:
    """True if a share rose by at least the smallest effect."""
    return share >= metric.times * base and share - base >= metric.points
