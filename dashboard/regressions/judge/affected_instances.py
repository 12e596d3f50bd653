"""Affected instances: the running state of a count of one region, with two rules.

Instance rule: an instance is affected if its share of events in the last `window_minutes` exceeds a
threshold (see `instance_windows`). The candidate is regressed if an instance is affected and no
instance of the baseline is suspected. The rule needs no statistics, so both levels of certainty
agree.

Rate rule: the candidate's events are compared with the baseline's rate since the deployment (see
`rate_ratio`). It applies if the metric is `by_rate` or if the baseline has suspected instances. It
also covers instances with too few calls for the instance rule.

Invariants:

- only strata in which instances of both arms are judged count for the instance rule;
- if the baseline has ended in a stratum within a day, its whole past replaces its minutes;
- a recovery needs a calm window: no affected instance for `recent_minutes`, less the length of the
  window that remembers events.

Source: the rules are this project's own; their constants are calibrated on simulated fleets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dashboard.regressions.judge.baseline_bursts import BaselineBursts
from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.inputs import CellKey, CellRows, Stratum
from dashboard.regressions.judge.instance_windows import (
    Instances,
    InstanceWindows,
    add_rows,
    effective_instances,
    sum_causes,
    survey_windows,
)
from dashboard.regressions.judge.onset import History, find_count_onset
from dashboard.regressions.judge.past_levels import DAY_MINUTES
from dashboard.regressions.judge.rate_ratio import Rate, RateSeries, Sums, estimate_rate
from dashboard.regressions.judge.reading_state import Reading
from dashboard.regressions.judge.settings import AffectedMetric, Settings

MIN_PAST_MINUTES = 30
"""Minutes for which a rate must be higher than in the past before its hold time begins. A storm of
errors hits any version, and no other version runs to show it."""
GROSS_RISE, STORM_RISE = 0.25, 0.6
"""A rise of the share that needs no test, and one that no usual storm of errors reaches."""
FULL_HOLD_RISE = 1 / 60
"""The unit of a rise for hold times: bursts of errors reach 5%, half of all calls needs less."""


class AffectedSeries:
    """One count of one region, by affected instances and by rate."""

    def __init__(self, metric: AffectedMetric, settings: Settings) -> None:
        self.metric = metric
        self.baseline: InstanceWindows = {}
        self.candidate: InstanceWindows = {}
        self.matched_minutes = 0
        self.baseline_seen: dict[Stratum, int] = {}
        """The last minute with calls of the baseline. Its last minutes count after its end."""
        self.judged: Instances = []
        self.affected: Instances = []
        self.baseline_judged: Instances = []
        self.baseline_affected: Instances = []
        self.baseline_suspected: Instances = []
        self.fresh: Instances = []
        """Affected instances whose newest minutes show it."""
        self.rates = RateSeries(metric, settings)
        self.history = History(find_count_onset)
        self._rate: Rate | None = None
        self._settings = settings
        self._calm_minutes = 0
        self._past_only = False
        self._risen_minutes = 0
        self._bursts = BaselineBursts(metric)
        self._recent_minutes = settings.recent_minutes

    def add(self, minute: int, rows: Mapping[CellKey, CellRows]) -> int:
        """Adds a minute. Returns 1 if instances of both arms could be judged, else 0."""
        called, sums = False, dict[Stratum, Sums]()
        self._bursts.add(rows)
        for (stratum, _), cell in rows.items():
            base_calls, base_events = self._take_baseline(stratum, minute, cell)
            candidate = cell.candidate
            if self.metric.from_start and cell.young:
                candidate = candidate + cell.young
            cand_calls, cand_events = add_rows(
                self.candidate, stratum, minute, candidate, self.metric
            )
            called = called or bool(candidate)
            found = sums.get(stratum)
            if found is None:
                found = sums[stratum] = Sums()
            found.base_calls += base_calls
            found.base_events += base_events
            found.cand_calls += cand_calls
            found.cand_events += cand_events
        if not called:
            return 0
        calls = sum(found.cand_calls for found in sums.values())
        if calls:
            # A client may report more errors than calls; a share of more than 1 has no likelihood.
            events = sum(found.cand_events for found in sums.values())
            self.history.add(minute, calls, min(events, calls))
        gone = self._add_past_counts(minute, rows, sums)
        self._past_only = bool(gone)
        self.rates.add(sums, gone)
        self._rate = None
        self._survey(minute)
        # An instance with very few calls is never judged alone. All of them together may fail often
        # enough for their rate.
        if not self.judged and not (
            self.metric.by_rate
            and any(found.base_calls and found.cand_calls for found in sums.values())
        ):
            return 0
        self.matched_minutes += 1
        self._calm_minutes = 0 if self.affected else self._calm_minutes + 1
        return 1

    def _survey(self, minute: int) -> None:
        base = survey_windows(self.baseline, minute, self.metric, self.baseline_seen)
        self.baseline_judged, self.baseline_suspected, self.baseline_affected = (
            base.judged,
            base.suspected,
            base.affected,
        )
        strata = {stratum for stratum, _ in base.judged}
        cand = survey_windows(self.candidate, minute, self.metric)
        self.judged, self.affected, self.fresh = (
            [key for key in keys if key[0] in strata]
            for keys in (cand.judged, cand.affected, cand.fresh)
        )

    def _add_past_counts(
        self, minute: int, rows: Mapping[CellKey, CellRows], sums: dict[Stratum, Sums]
    ) -> set[Stratum]:
        """Adds the baseline's whole past to the minute where the baseline has ended. Returns those
        strata."""
        gone = {
            stratum
            for (stratum, _), cell in rows.items()
            if cell.gone and minute - self.baseline_seen.get(stratum, minute) <= DAY_MINUTES
        }
        for stratum in gone:
            past = self.baseline.get(stratum, {}).values()
            sums[stratum].base_calls = sum(window.all_calls for window in past)
            sums[stratum].base_events = sum(window.all_events for window in past)
        return gone

    def remember(self, minute: int, rows: Mapping[CellKey, CellRows]) -> None:
        """Adds a minute of the baseline before the deployment."""
        self._bursts.add(rows)
        for (stratum, _), cell in rows.items():
            self._take_baseline(stratum, minute, cell)
            for unit in {row.unit for row in cell.baseline}:
                if unit in self.baseline.get(stratum, ()):
                    self.baseline[stratum][unit].drop_until(minute - self.metric.window_minutes)

    def _take_baseline(self, stratum: Stratum, minute: int, cell: CellRows) -> tuple[int, int]:
        if cell.baseline:
            self.baseline_seen[stratum] = minute
        return add_rows(self.baseline, stratum, minute, cell.baseline, self.metric)

    def share(self, windows: InstanceWindows) -> float | None:
        """The share of calls with events over the last minutes; None without a call."""
        found = [window for units in windows.values() for window in units.values()]
        calls = sum(window.calls for window in found)
        return sum(window.events for window in found) / calls if calls else None

    def causes(self) -> dict[str, int]:
        """The candidate's events by cause, largest first."""
        return sum_causes(self.candidate)

    @property
    def rate(self) -> Rate | None:
        """The rate compared with the baseline's since the deployment; computed on demand."""
        if self._rate is None and self.compares_rates:
            each = (
                (
                    sums,
                    effective_instances(self.baseline[key]),
                    effective_instances(self.candidate[key]),
                )
                for key, sums in self.rates.strata.items()
            )
            self._rate = estimate_rate(each, self.metric.dispersion, self._settings.prior_df)
        return self._rate

    @property
    def compares_rates(self) -> bool:
        """True if the rate also decides. Where one affected instance is sufficient, the rate
        decides only if the baseline has such instances, too."""
        return (self.metric.by_rate or bool(self.baseline_suspected)) and self.rates.side_by_side

    def shows(self) -> bool:
        """The instance rule. It needs no statistics, so both levels of certainty agree."""
        return bool(self.affected) and not self.baseline_suspected

    def read(self, budget: ErrorBudget, closely: bool) -> Reading:
        """Regressed if instances are affected and none of the baseline's is suspected, or if the
        rate rose by at least the smallest effect."""
        shows = self.shows()
        leaning = regressed = shows
        fresh = bool(self.fresh) or not shows
        if not shows and self.compares_rates and self.rates.window.has_risen(self.metric):
            rate = self.rate
            leaning = self.rates.exceeds(rate, self.rates.tail(budget, "watch"))
            regressed = leaning and self.rates.exceeds(rate, self.rates.tail(budget, "roll_back"))
            fresh = self.rates.newest.has_risen(self.metric, 0.5)
        risen = self._risen_minutes
        self._risen_minutes = risen + 1 if leaning and fresh else max(0, risen - 2)
        if self._past_only and self.metric.by_rate:
            lasting = self._bursts.are_exceeded(self._risen_minutes)
            leaning = leaning and lasting
            regressed = regressed and lasting and self._risen_minutes >= MIN_PAST_MINUTES
        rise = self._rise() if leaning or self.rates.window.has_risen(self.metric) else 0.0
        if self.metric.by_rate and self._is_gross(rise):
            leaning = regressed = fresh = True
        calm = self._calm_minutes
        recovered = calm > 0 and calm + self.metric.window_minutes > self._recent_minutes
        if recovered and self.compares_rates:
            recovered = self.rates.recovered()
        return Reading(
            regressed=regressed,
            leaning=leaning,
            recovered=recovered,
            relapsed=regressed,
            fresh=fresh,
            size=rise / FULL_HOLD_RISE,
        )

    def _rise(self) -> float:
        """The rise of the share over the last minutes, without the most affected one of several
        instances. Without a baseline in the same minutes only a very large one counts, because a
        storm of errors can hit any version."""
        windows = [window for units in self.candidate.values() for window in units.values()]
        called = [window for window in windows if window.calls]
        if len(called) > 1:
            called.remove(max(called, key=lambda window: window.events / window.calls))
        calls = sum(window.calls for window in called)
        rest = sum(window.events for window in called) / calls if calls else 0.0
        rise = min(self.rates.rise(), rest - (self.share(self.baseline) or 0.0))
        return 0.0 if self._past_only and rise < STORM_RISE else rise

    def _is_gross(self, rise: float) -> bool:
        """True if a large part of the last minutes' calls fails. It needs no test, and finds
        versions with few calls whose baseline has no event: their rate has a very wide
        interval."""
        return (
            rise >= GROSS_RISE and self.rates.window.sums.cand_events >= self.metric.affected_events
        )

    def undecided(self) -> bool:
        """True if both versions are affected and the rise is too large to ignore."""
        return bool(self.affected) and bool(self.baseline_suspected) and self._matters()

    def bound(self) -> float | None:
        """None: the tolerated rise of a count is in percentage points, not on the log scale of
        levels."""
        return None

    def expected(self) -> bool:
        """True if a version reports the counted value."""
        return bool(self.baseline or self.candidate)

    def contradicts(self) -> bool:
        """True if events are more frequent now, not in an earlier burst."""
        risen = self.rates.half_hour.has_risen(self.metric, 0.5)
        return self.shows() or self.undecided() or (self.metric.by_rate and risen)

    def tolerable(self) -> bool:
        """True if instances were judged, none is affected beyond the baseline, and no rate that
        matters is possible."""
        return (
            bool(self.judged)
            and not self.shows()
            and not self.undecided()
            and not self._may_matter()
        )

    def _may_matter(self) -> bool:
        metric, rate = self.metric, self.rate
        if metric.tolerated is None or rate is None or rate.events < metric.least_events:
            return False
        worst = rate.delta + rate.margin(self._settings.healthy_alpha)
        return (
            worst >= math.log1p(metric.tolerated) and rate.points(worst) >= metric.tolerated_points
        )

    def _matters(self) -> bool:
        """True if the share rose by at least the smallest effect over the last minutes."""
        base, cand = self.share(self.baseline) or 0.0, self.share(self.candidate) or 0.0
        return cand >= self.metric.times * base and cand - base >= self.metric.points
