"""Process levels: the running state of a level that is compared in every minute, or once per
instance."""

from __future__ import annotations

import math
from collections import deque

from dashboard.regressions.judge.inputs import Arm, Stratum
from dashboard.regressions.judge.past_levels import DAY_MINUTES
from dashboard.regressions.judge.pooled_estimate import Total, Unit, evict_units
from dashboard.regressions.judge.process.comparison import (
    ComparedSeries,
    Numbers,
    Strata,
    log_highest,
)
from dashboard.regressions.judge.process.metrics import LevelMetric, SingleValueMetric
from dashboard.regressions.judge.settings import Settings


class LevelSeries(ComparedSeries):
    """Every instance compared with the baseline of the same minute and stratum, since the
    deployment.

    If the baseline has ended, the candidate is compared with the baseline's instances in their last
    day. Process memory depends very little on the time of day, and is comparable across hosts of
    the stratum.
    """

    def __init__(self, metric: LevelMetric, settings: Settings) -> None:
        super().__init__(metric, settings)
        self.metric = metric
        self.totals: dict[Arm, dict[Stratum, dict[Unit, Total]]] = {"baseline": {}, "candidate": {}}
        self.after_end = 0
        """Minutes compared with the baseline's last day."""
        self._past: dict[Stratum, dict[Unit, Total]] = {}
        self._seen: dict[Stratum, int] = {}
        self._recent: deque[float] = deque(maxlen=settings.recent_minutes)

    def remember(self, minute: int, strata: Strata) -> None:
        """Adds a minute of the baseline before the deployment."""
        for stratum, arms in strata.items():
            self._keep(minute, stratum, log_highest(arms.baseline, self.metric.value))

    def add(self, minute: int, strata: Strata) -> int:
        """Adds a minute. Returns 1 if it was compared, else 0."""
        changes: list[float] = []
        ended = False
        for stratum, arms in strata.items():
            base, cand = (
                log_highest(arms.baseline, self.metric.value),
                log_highest(arms.candidate, self.metric.value),
            )
            self._keep(minute, stratum, base)
            if cand and not arms.baseline and (past := self._ended(minute, stratum)):
                self.reports |= {"baseline", "candidate"}
                middle = math.fsum(past.values()) / len(past)
                self._sum("candidate", stratum, cand, middle, minute)
                changes += [level - middle for level in cand.values()]
                ended = True
            elif self.note(arms, base, cand):
                middle = math.fsum(base.values()) / len(base)
                self._sum("baseline", stratum, base, middle, minute)
                self._sum("candidate", stratum, cand, middle, minute)
                changes += [level - middle for level in cand.values()]
        if not changes:
            return 0
        self.matched_minutes += 1
        self.after_end += ended
        self._recent.append(math.fsum(changes) / len(changes))
        self.changed()
        return 1

    def _keep(self, minute: int, stratum: Stratum, base: Numbers) -> None:
        if base:
            self._seen[stratum] = minute
            self._add(self._past.setdefault(stratum, {}), base, 0.0, minute)

    def _ended(self, minute: int, stratum: Stratum) -> Numbers:
        """The baseline's instances where it ended within a day. Instances that never ran alongside
        the candidate count from now on."""
        last = self._seen.get(stratum)
        if last is None or not self._settings.gone_minutes <= minute - last <= DAY_MINUTES:
            return {}
        kept = {
            unit: total
            for unit, total in self._past[stratum].items()
            if total.minutes >= self._settings.instance_minutes
        }
        past = {unit: total.level / total.minutes for unit, total in kept.items()}
        matched = self.totals["baseline"].setdefault(stratum, {})
        for unit in past.keys() - matched.keys():
            found = matched[unit] = Total()
            found.level, found.minutes = kept[unit].level, kept[unit].minutes
            found.difference = kept[unit].level - kept[unit].minutes * math.fsum(
                past.values()
            ) / len(past)
        return past

    def _sum(self, arm: Arm, stratum: Stratum, levels: Numbers, middle: float, minute: int) -> None:
        self._add(self.totals[arm].setdefault(stratum, {}), levels, middle, minute)

    def _add(self, totals: dict[Unit, Total], levels: Numbers, middle: float, minute: int) -> None:
        for unit, level in levels.items():
            total = totals.get(unit)
            if total is None:
                evict_units(totals, minute)
                total = totals[unit] = Total()
            total.last = minute
            total.difference += level - middle
            total.level += level
            total.minutes += 1

    def numbers(self, arm: Arm, stratum: Stratum) -> Numbers:
        """The mean matched difference of every instance with enough minutes."""
        least = self._settings.instance_minutes
        totals = self.totals[arm].get(stratum, {})
        return {
            unit: total.difference / total.minutes
            for unit, total in totals.items()
            if total.minutes >= least
        }

    def strata(self) -> list[Stratum]:
        """The strata in which the candidate was matched."""
        return list(self.totals["candidate"])

    def minutes(self) -> float:
        """Mean number of matched minutes of the candidate's counted instances."""
        counts = [
            total.minutes
            for totals in self.totals["candidate"].values()
            for total in totals.values()
            if total.minutes >= self._settings.instance_minutes
        ]
        return sum(counts) / len(counts)

    def recent_change(self) -> float | None:
        """The mean change over the last half hour of data; None before that much data exists."""
        return (
            math.fsum(self._recent) / len(self._recent)
            if len(self._recent) == self._recent.maxlen
            else None
        )

    def bound(self) -> float | None:
        """The largest change that the data does not rule out, on the log scale."""
        estimate = self.estimate
        return estimate.delta + estimate.margin(self._settings.healthy_alpha) if estimate else None

    def contradicts(self) -> bool:
        """True if the change is at least the smallest effect."""
        estimate = self.estimate
        return estimate is not None and estimate.delta >= self._effect

    def tolerable(self) -> bool:
        """True if that bound is below the tolerated change. A metric that no version reports holds
        no verdict back."""
        bound = self.bound()
        return not self.reports or (bound is not None and bound < math.log1p(self.metric.tolerated))


class SingleValueSeries(ComparedSeries):
    """One number per instance, recorded when it is first known."""

    def __init__(self, metric: SingleValueMetric, settings: Settings) -> None:
        super().__init__(metric, settings)
        self.metric = metric
        self.values: dict[Arm, dict[Stratum, Numbers]] = {"baseline": {}, "candidate": {}}

    def add(self, minute: int, strata: Strata) -> int:
        """Adds a minute. Returns 1 if instances of both arms ran and their numbers can be compared,
        else 0."""
        for stratum, arms in strata.items():
            base, cand = (
                log_highest(arms.baseline, self.metric.value),
                log_highest(arms.candidate, self.metric.value),
            )
            self.note(arms, base, cand)
            self._take("baseline", stratum, base)
            self._take("candidate", stratum, cand)
        runs = any(arms.candidate for arms in strata.values())
        if not runs or not self.groups:
            return 0
        self.matched_minutes += 1
        return 1

    def _take(self, arm: Arm, stratum: Stratum, found: Numbers) -> None:
        known = self.values[arm].setdefault(stratum, {})
        for unit, number in found.items():
            if number > known.get(unit, -math.inf):
                known[unit] = number
                self.changed()

    def numbers(self, arm: Arm, stratum: Stratum) -> Numbers:
        """The known number of every instance."""
        return self.values[arm].get(stratum, {})

    def strata(self) -> list[Stratum]:
        """The strata with a number of the candidate."""
        return [stratum for stratum, known in self.values["candidate"].items() if known]
