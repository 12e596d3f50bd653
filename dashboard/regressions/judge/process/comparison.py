"""Process comparison: one number per instance, and the pooled change over the instances of both
versions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from dashboard.regressions.judge.error_budget import BudgetVerdict, ErrorBudget, find_tail
from dashboard.regressions.judge.inputs import Arm, Stratum
from dashboard.regressions.judge.pooled_estimate import (
    Estimate,
    Group,
    Unit,
    combine,
    group,
    pool_change,
    prior_at,
)
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute
from dashboard.regressions.judge.reading_state import CALM, Reading
from dashboard.regressions.judge.settings import Settings

Numbers = dict[Unit, float]
Units = dict[Unit, list[InstanceProcessMinute]]


class Arms(NamedTuple):
    """The processes of one stratum in one minute, by independent unit."""

    baseline: Units
    candidate: Units


SMALLEST = 1e-6
"""Neither a byte nor a second: a value at or below it was not measured."""

MIN_GROWTH = 4.0
"""Minimum growth of information: instances join one after the other."""

Strata = Mapping[Stratum, Arms]


class HasLevel(Protocol):
    """The fields that a metric needs for this comparison."""

    @property
    def name(self) -> str: ...
    @property
    def smallest_effect(self) -> float: ...
    @property
    def prior_variance(self) -> tuple[tuple[int, float], ...]: ...
    @property
    def weight(self) -> float: ...
    @property
    def hard(self) -> bool: ...
    @property
    def muted(self) -> bool: ...


def log_highest(units: Units, value: Callable[[InstanceProcessMinute], float | None]) -> Numbers:
    """The log of the highest value of each unit: the rank with the most memory fails first, and the
    slowest rank delays the others."""
    found = {}
    for unit, rows in units.items():
        top = SMALLEST
        for row in rows:
            number = value(row)
            if number is not None and top < number < math.inf:
                top = number
        if top > SMALLEST:
            found[unit] = math.log(top)
    return found


class ComparedSeries(ABC):
    """Base class: numbers of instances by stratum become a change with its error."""

    def __init__(self, metric: HasLevel, settings: Settings) -> None:
        self.matched_minutes = 0
        self.reports: set[Arm] = set()
        self._settings = settings
        self._prior = metric.prior_variance
        self._weighted = metric
        self._growth = max(MIN_GROWTH, metric.prior_variance[0][1] / metric.prior_variance[-1][1])
        self._effect = math.log1p(metric.smallest_effect)
        self._known: tuple[list[Group], Estimate | None] | None = None

    @abstractmethod
    def numbers(self, arm: Arm, stratum: Stratum) -> Numbers:
        """The number of every counted instance, on the log scale."""

    @abstractmethod
    def strata(self) -> list[Stratum]:
        """The strata with numbers of the candidate."""

    def minutes(self) -> float:
        """Mean number of minutes behind a number of the candidate."""
        return 0.0

    def recent_change(self) -> float | None:
        """The change over the last minutes; None if it cannot be separated from the whole."""
        return None

    def changed(self) -> None:
        """Drops the cached result after a number changed."""
        self._known = None

    @property
    def groups(self) -> list[Group]:
        """The strata in which both arms have a number."""
        return self._worked_out()[0]

    @property
    def estimate(self) -> Estimate | None:
        """The change with its error; None while there is nothing to compare."""
        groups, estimate = self._worked_out()
        if estimate is None and groups:
            estimate = combine(
                groups, prior_at(self._prior, self.minutes()), self._settings.prior_df
            )
            self._known = groups, estimate
        return estimate

    def _worked_out(self) -> tuple[list[Group], Estimate | None]:
        if self._known is None:
            self._known = (
                make_groups(
                    [
                        (name, self.numbers("baseline", name), self.numbers("candidate", name))
                        for name in self.strata()
                    ]
                ),
                None,
            )
        return self._known

    @property
    def one_sided(self) -> bool:
        """True if one version reports the metric and the other, running at the same time, does
        not."""
        return len(self.reports) == 1

    def note(self, arms: Arms, base: Numbers, cand: Numbers) -> bool:
        """Records which arms report where both run. Returns True if both do."""
        if base and arms.candidate:
            self.reports.add("baseline")
        if cand and arms.baseline:
            self.reports.add("candidate")
        return bool(base and cand)

    def margin(self, budget: ErrorBudget, verdict: BudgetVerdict) -> float:
        """Half the width of the interval at the boundary of a verdict."""
        estimate = self.estimate
        if estimate is None:
            return math.inf
        return estimate.margin(find_tail(budget.part(self._weighted, verdict), self._growth))

    def read(self, budget: ErrorBudget, closely: bool) -> Reading:
        """The current reading. With `closely`, the most recent data is read even if nothing is
        regressed."""
        groups = self.groups
        if not groups:
            return CALM
        delta = pool_change(groups)
        large = delta >= self._effect
        if not large and not closely:
            return CALM
        leaning = large and delta > self.margin(budget, "watch")
        recent = self.recent_change()
        return Reading(
            regressed=leaning and delta > self.margin(budget, "roll_back"),
            leaning=leaning,
            recovered=recent is not None and recent < self._effect / 2,
            relapsed=recent is not None and recent >= self._effect,
        )

    def bound(self) -> float | None:
        """None: without a tolerated change there is no bound."""
        return None

    def expected(self) -> bool:
        """True if HEALTHY must wait for the result. A metric that no version reports is not
        awaited."""
        return bool(self.reports)

    def contradicts(self) -> bool:
        """True if an earlier HEALTHY no longer holds."""
        return not self.tolerable()

    def tolerable(self) -> bool:
        """True: the metric holds no verdict back."""
        return True


def make_groups(strata: Sequence[tuple[Stratum, Numbers, Numbers]]) -> list[Group]:
    """The groups of strata in which both arms have a number."""
    return [group(stratum, base, cand) for stratum, base, cand in strata if base and cand]
