"""The running state of a count: which instances are affected over the last minutes, and the rate
beside the baseline's."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dashboard.regressions.judge.before_after import DAY_MINUTES
from dashboard.regressions.judge.inputs import CellKey, CellRows, Stratum
from dashboard.regressions.judge.instance_windows import (
    Instances,
    InstanceWindows,
    add_rows,
    effective_instances,
    survey_windows,
)
from dashboard.regressions.judge.rate_ratio import Rate, RateSeries, Sums, estimate_rate
from dashboard.regressions.judge.reading_state import Reading
from dashboard.regressions.judge.settings import AffectedMetric, Settings


class AffectedSeries:
    """One count of one region, judged by the instances that show it and by its rate: see `read`."""

    def __init__(self, metric: AffectedMetric, settings: Settings) -> None:
        self.metric = metric
        self.baseline: InstanceWindows = {}
        self.candidate: InstanceWindows = {}
        self.matched_minutes = 0
        self.baseline_seen: dict[Stratum, int] = {}
        """The last minute with calls of the baseline: where it has ended, its last minutes are what
        the candidate stands beside."""
        self.judged: Instances = []
        self.affected: Instances = []
        self.baseline_judged: Instances = []
        self.baseline_affected: Instances = []
        self.baseline_suspected: Instances = []
        self.fresh: Instances = []
        """Affected instances that show it in the newest minutes as well."""
        self.rates = RateSeries(metric, settings)
        self._rate: Rate | None = None
        self._settings = settings
        self._calm_minutes = 0
        self._recent_minutes = settings.recent_minutes

    def add(self, minute: int, rows: Mapping[CellKey, CellRows]) -> int:
        """Takes a minute; answers 1 when instances of both arms could be judged, else 0."""
        called = False
        sums: dict[Stratum, Sums] = {}
        for (stratum, _), cell in rows.items():
            base_calls, base_events = self._take_baseline(stratum, minute, cell)
            cand_calls, cand_events = add_rows(
                self.candidate, stratum, minute, cell.candidate, self.metric
            )
            called = called or bool(cell.candidate)
            found = sums.get(stratum)
            if found is None:
                found = sums[stratum] = Sums()
            found.base_calls += base_calls
            found.base_events += base_events
            found.cand_calls += cand_calls
            found.cand_events += cand_events
        if not called:
            return 0
        self.rates.add(sums, self._add_past_counts(minute, rows, sums))
        self._rate = None
        self._survey(minute)
        # Instances that hardly call are never judged by themselves; all of them together may fail
        # often enough for their rate.
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
        """Puts all that the baseline did in its last day beside the candidate's minute where it has
        ended; answers with those strata."""
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
        """Takes a minute of the baseline before the deployment."""
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
        """The share of calls that show it over the last minutes; None without a call."""
        found = [window for units in windows.values() for window in units.values()]
        calls = sum(window.calls for window in found)
        return sum(window.events for window in found) / calls if calls else None

    def causes(self) -> dict[str, int]:
        """The candidate's events by cause, most frequent first."""
        counts: dict[str, int] = {}
        for units in self.candidate.values():
            for window in units.values():
                for cause, count in window.causes.items():
                    counts[cause] = counts.get(cause, 0) + count
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def rate(self) -> Rate | None:
        """The rate beside the baseline's since the deployment; worked out when somebody asks."""
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
        """Whether the rate decides too: where one affected instance says enough, only when the
        baseline has such instances as well."""
        return (self.metric.by_rate or bool(self.baseline_suspected)) and self.rates.side_by_side

    def shows(self) -> bool:
        """The rule of affected instances; it needs no statistics, so both levels of certainty
        answer alike."""
        return bool(self.affected) and not self.baseline_suspected

    def read(self, comparisons: int, closely: bool) -> Reading:
        """Regressed when instances are affected and none of the baseline's is, or when the rate is
        up by what matters."""
        shows = self.shows()
        leaning = regressed = shows
        fresh = bool(self.fresh) or not shows
        if not shows and self.compares_rates and self.rates.window.has_risen(self.metric):
            rate = self.rate
            leaning = self.rates.exceeds(rate, self._settings.watch_alpha, comparisons)
            regressed = leaning and self.rates.exceeds(
                rate, self._settings.roll_back_alpha, comparisons
            )
            fresh = self.rates.newest.has_risen(self.metric, 0.5)
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
        )

    def undecided(self) -> bool:
        """Both versions are affected, the candidate by more than can be passed over."""
        return bool(self.affected) and bool(self.baseline_suspected) and self._matters()

    def bound(self) -> float | None:
        """A count has no bound beside those of levels: what is tolerated of it is told in
        points."""
        return None

    def expected(self) -> bool:
        """Whether a version reports what is counted."""
        return bool(self.baseline or self.candidate)

    def tolerable(self) -> bool:
        """Whether instances were judged, none is affected beyond the baseline, and no rate that
        would matter is left possible."""
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
        return worst >= math.log1p(metric.tolerated) and rate.points(worst) >= metric.points

    def _matters(self) -> bool:
        """Whether the share rose by as much as matters, over the last minutes."""
        base, cand = self.share(self.baseline) or 0.0, self.share(self.candidate) or 0.0
        return cand >= self.metric.times * base and cand - base >= self.metric.points
