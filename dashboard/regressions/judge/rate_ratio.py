"""Rate ratio: the candidate's events compared with the events expected at the baseline's rate.

Algorithm: indirect standardization. The expected events are the sum over strata of the candidate's
calls times the baseline's rate. The change is the log ratio of observed and expected events, each
plus one half. The variance has two terms:

    1 / (events + 0.5) + 1 / (base_events + 0.5)          Poisson counts, delta method
    dispersion^2 * (1 / cand_instances + 1 / base_instances)        between instances

The numbers of instances are effective ones (Kish). The interval uses the t distribution with
`prior_df` degrees of freedom, and the same correction for repeated evaluation as levels.

Invariants:

- only minutes in which both arms had calls in the stratum count, or the baseline's past where it
  has ended;
- the rates decide only if at least half of the candidate's calls had such a counterpart;
- a regression must also show in the last `window_minutes`, because the mean stays high after a
  burst.

Source: standardized event ratio with the correction of one half for small counts (Haldane, 1956;
Anscombe, 1956).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from dashboard.regressions.judge.error_budget import BudgetVerdict, ErrorBudget, find_tail
from dashboard.regressions.judge.inputs import Stratum
from dashboard.regressions.judge.pooled_estimate import t_quantile
from dashboard.regressions.judge.settings import AffectedMetric, Settings

FRESH_MINUTES = 3
"""A minute counts towards a hold time if these last minutes show the events: a window remembers a
burst for longer than it lasted."""


RATE_GROWTH = 8.0
"""Growth of the information of a rate, from the first events until the spread between instances
limits it."""


class Sums:
    """Events and calls of both arms in one stratum, from minutes with calls of both."""

    __slots__ = ("base_calls", "base_events", "cand_calls", "cand_events")

    def __init__(
        self, base_events: int = 0, base_calls: int = 0, cand_events: int = 0, cand_calls: int = 0
    ) -> None:
        self.base_events = base_events
        self.base_calls = base_calls
        self.cand_events = cand_events
        self.cand_calls = cand_calls


class Rate(NamedTuple):
    """A change of a rate on the log scale with its standard error; positive is worse.

    `expected` is the number of the candidate's events at the baseline's rate of each stratum.
    """

    delta: float
    error: float
    events: int
    expected: float
    base_events: int
    calls: int
    df: int

    @property
    def share(self) -> float:
        """The candidate's share of calls with events."""
        return self.events / self.calls

    @property
    def baseline(self) -> float:
        """The expected share of calls with events."""
        return self.expected / self.calls

    def matters(self, change: float, metric: AffectedMetric) -> bool:
        """True if a change on the log scale reaches the metric's `times` and `points`."""
        return change >= math.log(metric.times) and self.points(change) >= metric.points

    def points(self, change: float) -> float:
        """The rise of the share for this change. If the baseline has no event, half an event is
        assumed."""
        return math.expm1(min(change, 700.0)) * max(self.expected, 0.5) / self.calls

    def margin(self, tail: float) -> float:
        """Half the width of the interval with probability `tail` in each tail."""
        return t_quantile(self.df, tail) * self.error


def estimate_rate(
    strata: Iterable[tuple[Sums, float, float]], dispersion: float, prior_df: int
) -> Rate | None:
    """The rate over all strata; None without calls. Each stratum comes with the numbers of baseline
    and candidate instances that share its calls."""
    events = base_events = calls = 0
    expected = base_instances = cand_instances = 0.0
    for sums, base, cand in strata:
        events += sums.cand_events
        base_events += sums.base_events
        calls += sums.cand_calls
        expected += sums.cand_calls * sums.base_events / sums.base_calls
        base_instances += base
        cand_instances += cand
    if not calls:
        return None
    delta = math.log((events + 0.5) / (expected + 0.5))
    # Rates of instances of one version differ by more than chance: `dispersion` is their
    # coefficient of variation.
    spread = dispersion**2 * (1.0 / cand_instances + 1.0 / base_instances)
    variance = 1.0 / (events + 0.5) + 1.0 / (base_events + 0.5) + spread
    return Rate(delta, math.sqrt(variance), events, expected, base_events, calls, prior_df)


class RecentMinutes:
    """Events and calls of both arms over the last minutes of data, all strata together."""

    __slots__ = ("_length", "_minutes", "sums")

    def __init__(self, length: int) -> None:
        self.sums = Sums()
        self._length = length
        self._minutes: deque[Sums] = deque()

    @property
    def full(self) -> bool:
        """True if the full number of minutes is present."""
        return len(self._minutes) == self._length

    def add(self, minute: Sums) -> None:
        """Adds a minute and drops the oldest."""
        self._minutes.append(minute)
        self._count(minute, 1)
        if len(self._minutes) > self._length:
            self._count(self._minutes.popleft(), -1)

    def _count(self, minute: Sums, sign: int) -> None:
        sums = self.sums
        sums.base_events += sign * minute.base_events
        sums.base_calls += sign * minute.base_calls
        sums.cand_events += sign * minute.cand_events
        sums.cand_calls += sign * minute.cand_calls

    def rise(self) -> float:
        """The difference of the shares; 0 without calls of both arms."""
        sums = self.sums
        if not sums.cand_calls or not sums.base_calls:
            return 0.0
        return sums.cand_events / sums.cand_calls - sums.base_events / sums.base_calls

    def has_risen(self, metric: AffectedMetric, part: float = 1.0) -> bool:
        """True if the candidate's share is higher by `part` of the smallest effect, without a test
        of confidence."""
        sums = self.sums
        if not sums.cand_calls or not sums.base_calls:
            return False
        base, cand = sums.base_events / sums.base_calls, sums.cand_events / sums.cand_calls
        return (
            cand >= (1.0 + part * (metric.times - 1.0)) * base
            and cand - base >= part * metric.points
        )


class RateSeries:
    """One count of one region, compared as a rate since the deployment."""

    def __init__(self, metric: AffectedMetric, settings: Settings) -> None:
        self.metric = metric
        self.strata: dict[Stratum, Sums] = {}
        self.window = RecentMinutes(metric.window_minutes)
        self.newest = RecentMinutes(FRESH_MINUTES)
        self.half_hour = RecentMinutes(settings.recent_minutes)
        self._called = self._matched = 0

    def add(self, minute: Mapping[Stratum, Sums], gone: Set[Stratum] = frozenset()) -> None:
        """Adds a minute. Strata with calls of one arm only are excluded. In a stratum of `gone`,
        the baseline's part is its whole past."""
        total = Sums()
        for stratum, sums in minute.items():
            self._called += sums.cand_calls
            if not sums.base_calls or not sums.cand_calls:
                continue
            kept = self.strata.get(stratum)
            if kept is None:
                kept = self.strata[stratum] = Sums()
            if stratum in gone:
                kept.base_events = kept.base_calls = 0
            for each in (kept, total):
                each.base_events += sums.base_events
                each.base_calls += sums.base_calls
                each.cand_events += sums.cand_events
                each.cand_calls += sums.cand_calls
        if total.cand_calls:
            self._matched += total.cand_calls
            self.window.add(total)
            self.newest.add(total)
            self.half_hour.add(total)

    @property
    def side_by_side(self) -> bool:
        """True if most of the candidate's calls had calls of the baseline in the same minutes, or
        its past."""
        return 0 < self._called <= 2 * self._matched

    def exceeds(self, rate: Rate | None, tail: float) -> bool:
        """True if the rate rose by at least the smallest effect with confidence, and still had
        risen over the last minutes: a burst keeps the mean up after its end."""
        if (
            rate is None
            or rate.events < self.metric.least_events
            or not rate.matters(rate.delta, self.metric)
        ):
            return False
        return rate.delta > rate.margin(tail) and self.window.has_risen(self.metric)

    def tail(self, budget: ErrorBudget, verdict: BudgetVerdict) -> float:
        """The tail of one test of this rate."""
        return find_tail(budget.part(self.metric, verdict), RATE_GROWTH)

    def rise(self) -> float:
        """The rise of the share over the last minutes: the smaller one of the window and the newest
        minutes."""
        return min(self.window.rise(), self.newest.rise()) if self.newest.full else 0.0

    def recovered(self) -> bool:
        """True if the last half hour shows less than half of the smallest effect."""
        return self.half_hour.full and not self.half_hour.has_risen(self.metric, 0.5)
