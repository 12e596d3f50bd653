"""Level reading: the tests of a level, and the reading that they give.

Tests, each with its part of the error budget:

- whole: the mean since the deployment over all strata and buckets;
- trailing: the last hour and the last four hours, against the time before (`trailing_window`);
- cohort: every GPU type, mode, runtime, world size, bucket and stratum, if there are several. They
  are tested together with the step-up procedure of Benjamini and Hochberg, so the false-discovery
  rate is at most their part;
- outlier: a single instance among several. It asks for WATCH at most;
- gross: each of the last GROSS_MINUTES shows a change that no noise causes. It needs no budget.

Invariants: a change below the smallest effect is no finding; a change that one instance accounts
for is narrow and asks for WATCH at most; the first test that finds something is shown.

Source: Benjamini and Hochberg, Controlling the False Discovery Rate, J. R. Stat. Soc. B 57, 1995.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dashboard.regressions.judge.cohorts import Cohort
from dashboard.regressions.judge.error_budget import (
    BudgetVerdict,
    ErrorBudget,
    find_crossing,
    find_tail,
    find_window_tail,
)
from dashboard.regressions.judge.inputs import Stratum
from dashboard.regressions.judge.level_ratio import EARLY_MINUTES, RatioSeries
from dashboard.regressions.judge.pooled_estimate import (
    Estimate,
    Group,
    Unit,
    pool_change,
    pool_without_worst,
    t_quantile,
    t_tail,
)
from dashboard.regressions.judge.reading_state import CALM, Reading

WHOLE_SHARE, TRAILING_SHARE, COHORT_SHARE, OUTLIER_SHARE = 0.6, 0.2, 0.1, 0.1
"""The parts of a level's budget."""
GROSS_MINUTES = 3
"""Minutes of data that must all show a gross change."""
GROSS_SEVERAL, GROSS_SINGLE = (6.0, 3), (8.0, 5)
"""Standard deviations of a minute's noise that a gross change exceeds, and its minutes, on several
instances and on a single one."""
NEIGHBOUR_CHANGE, NEIGHBOUR_MINUTES = 2.0, 15
"""Two busy neighbours at once slow a single instance by less than this, and seldom for longer."""
WATCH_SETTLE, ROLL_BACK_SETTLE = (12, 0.75), (15, 0.85)
"""Matched minutes before a change that is not gross counts, and the part of the first third of the
last half hour that the last third must reach."""
SETTLED_MINUTES = 90
"""Matched minutes until which a change must not fall."""
LATE_SHARE = 0.5
"""The part of a single instance's change that its first hour must show. Below it, the change came
later, and a throttled host is as likely as the version."""
FADING_SHARE = 0.6
"""The part of the mean change that the last half hour must show before ROLL BACK."""
SHOWN_SHARE = 0.6
"""The part of the last half hour that must show half of the smallest effect. A short burst moves a
mean for hours."""


class Finding(NamedTuple):
    """An estimate with the tails of its boundaries.

    `window_minutes` is the length of a trailing window, 0 for the time since the deployment.
    `cohort` is the only part of the level that the estimate is of, None for the whole.
    """

    estimate: Estimate
    tail: float
    watch_tail: float
    window_minutes: int = 0
    cohort: Cohort | None = None
    narrow: bool = False

    @property
    def margin(self) -> float:
        """Half the width of the interval at the boundary of ROLL BACK."""
        return self.estimate.margin(self.tail)

    def exceeds(self, effect: float, verdict: BudgetVerdict) -> bool:
        """True if the change is at least the smallest effect and above the boundary."""
        tail = self.tail if verdict == "roll_back" else self.watch_tail
        delta = self.estimate.delta
        return delta >= effect and delta > self.estimate.margin(tail)


def read_level(series: RatioSeries, budget: ErrorBudget, closely: bool) -> Reading:
    """The current reading. With `closely`, the most recent data is read even if nothing is
    regressed."""
    if not series.groups:
        return CALM
    gross = is_gross(series)
    found = None
    if (
        not gross
        and series.recent.shown_share >= SHOWN_SHARE
        and not is_settling(series, *WATCH_SETTLE)
    ):
        found = find_change(series, budget)
    named = found is None and not gross and find_outlier(series, budget) is not None
    if not (found or gross or named or closely):
        return CALM
    seen = not series.is_within_bucket
    recent = series.recent.mean()
    change = found.estimate.delta if found else series.recent.floor(GROSS_MINUTES) if gross else 0.0
    sure = found is not None and not found.narrow and found.exceeds(series.effect, "roll_back")
    sure = sure and not is_settling(series, *ROLL_BACK_SETTLE)
    if found and not found.window_minutes and found.cohort is None and recent is not None:
        # A change that fades, like a slow start, is no reason for a rollback.
        sure = sure and recent >= FADING_SHARE * found.estimate.delta
    return Reading(
        regressed=(sure or gross) and seen,
        leaning=(found is not None or gross or named) and seen,
        recovered=recent is not None and recent < series.effect / 2,
        relapsed=recent is not None and recent >= series.effect and seen,
        narrow=(named or (found is not None and found.narrow)) and seen,
        size=change / series.effect,
    )


def find_shown(series: RatioSeries, budget: ErrorBudget) -> Finding | None:
    """The finding to show: the first one, else the whole; None without an estimate."""
    estimate = series.estimate
    if estimate is None:
        return None
    return find_change(series, budget) or whole_finding(series, budget, estimate)


def find_change(series: RatioSeries, budget: ErrorBudget) -> Finding | None:
    """The first test that is sure of ROLL BACK, else the first at the level of certainty of WATCH;
    None if all are calm."""
    first = None
    for one in list_findings(series, budget):
        if not one.exceeds(series.effect, "watch"):
            continue
        if not one.narrow and one.exceeds(series.effect, "roll_back"):
            return one
        first = first or one
    return first


def list_findings(series: RatioSeries, budget: ErrorBudget) -> Iterator[Finding]:
    """The tests whose change is at least the smallest effect."""
    if pool_change(series.groups) >= series.effect:
        estimate = series.estimate
        if estimate is not None:
            yield whole_finding(series, budget, estimate)
    for window, estimate in series.trailing.items():
        yield window_finding(series, budget, window, estimate)
    yield from find_cohorts(series, budget)


def whole_finding(series: RatioSeries, budget: ErrorBudget, estimate: Estimate) -> Finding:
    """The test of the time since the deployment."""
    return Finding(
        estimate,
        find_tail(WHOLE_SHARE * budget.part(series.metric, "roll_back"), series.growth),
        find_tail(WHOLE_SHARE * budget.part(series.metric, "watch"), series.growth),
        narrow=is_single(series) or is_late(series, estimate) or is_alone(series, estimate),
    )


def window_finding(
    series: RatioSeries, budget: ErrorBudget, window: int, estimate: Estimate
) -> Finding:
    """The test of a trailing window. A throttled host slows a single instance for hours."""
    verdicts: tuple[BudgetVerdict, ...] = ("roll_back", "watch")
    tail, watch_tail = (
        find_window_tail(
            TRAILING_SHARE * budget.part(series.metric, verdict) / len(series.windows),
            window,
            series.matched_minutes,
        )
        for verdict in verdicts
    )
    rest = pool_without_worst(estimate.groups)
    narrow = rest is None or is_alone(series, estimate)
    return Finding(estimate, tail, watch_tail, window, narrow=narrow)


def find_cohorts(series: RatioSeries, budget: ErrorBudget) -> Iterator[Finding]:
    """The cohorts that are worse, by the step-up procedure, most certain first."""
    cohorts, whole = series.cohorts, series.groups
    if not cohorts or max(estimate.delta for estimate in cohorts.values()) < series.effect:
        return
    crossings = {
        name: find_crossing(t_tail(estimate.df, estimate.delta / estimate.error), series.growth)
        for name, estimate in cohorts.items()
    }
    order = sorted(crossings, key=lambda name: (crossings[name], name))
    tails: dict[BudgetVerdict, float] = {}
    verdicts: tuple[BudgetVerdict, ...] = ("roll_back", "watch")
    for verdict in verdicts:
        rate = COHORT_SHARE * budget.part(series.metric, verdict)
        passed = max(
            (
                place
                for place, name in enumerate(order, 1)
                if crossings[name] <= rate * place / len(order)
            ),
            default=1,
        )
        tails[verdict] = find_tail(rate * passed / len(order), series.growth)
    for name in order:
        estimate = cohorts[name]
        # One of several instances is no cohort: its machine may be the cause.
        one = len(list_candidates(estimate.groups)) == 1 < len(list_candidates(whole))
        narrow = one or is_single(series, estimate) or is_late(series, estimate)
        narrow = narrow or is_alone(series, estimate)
        yield Finding(estimate, tails["roll_back"], tails["watch"], cohort=name, narrow=narrow)


def list_candidates(groups: Sequence[Group]) -> set[tuple[Stratum, Unit]]:
    """The candidate's instances of these groups."""
    return {(part.stratum, unit) for part in groups for unit in part.candidate}


def is_single(series: RatioSeries, estimate: Estimate | None = None) -> bool:
    """True if a single candidate instance has too few minutes to separate its version from its
    machine's neighbours."""
    groups = estimate.groups if estimate else series.groups
    return (
        series.matched_minutes < series.settings.lone_minutes
        and sum(len(part.candidate) for part in groups) == 1
    )


def is_late(series: RatioSeries, estimate: Estimate) -> bool:
    """True if a single candidate instance was not slower in its first hour."""
    return (
        len(list_candidates(estimate.groups)) == 1
        and series.matched_minutes >= 2 * EARLY_MINUTES
        and series.early_change < LATE_SHARE * pool_change(series.groups)
    )


def is_alone(series: RatioSeries, estimate: Estimate) -> bool:
    """True if one of several instances accounts for nearly all of the change. The cause is then
    more often its machine than its version."""
    rest = pool_without_worst(estimate.groups)
    return rest is not None and rest < series.settings.others_share * pool_change(estimate.groups)


class Outlier(NamedTuple):
    """One of several candidate instances, and its change on the log scale."""

    unit: Unit
    change: float


def find_outlier(series: RatioSeries, budget: ErrorBudget) -> Outlier | None:
    """The one of several candidate instances that is far slower than the baseline, with confidence;
    None if none is."""
    count = sum(len(each.candidate) for each in series.groups)
    part = max(series.groups, key=lambda each: max(each.candidate.values()) - each.baseline_mean)
    unit = max(part.candidate, key=lambda unit: (part.candidate[unit], str(unit)))
    apart = part.candidate[unit] - part.baseline_mean
    if count < 2 or apart < math.log1p(series.settings.outlier_change):
        return None
    # The instance itself would widen the interval until it could not be named.
    others = series.estimate_without(part.stratum, unit)
    if others is None:
        return None
    estimate, rate = others, OUTLIER_SHARE * budget.part(series.metric, "watch") / count
    error = math.sqrt(estimate.variance * (1.0 + 1.0 / len(part.baseline)))
    margin = t_quantile(estimate.df, find_tail(rate, series.growth)) * error
    return Outlier(unit, apart) if apart > margin else None


def is_gross(series: RatioSeries) -> bool:
    """True if each of the last minutes shows a gross change of call time that not only one of
    several instances accounts for. A fleet with more noise needs a larger change."""
    if not series.metric.leads:
        return False
    least, floor = math.log1p(series.settings.gross_change), series.recent.floor(GROSS_MINUTES)
    if floor < least:
        return False
    single = sum(len(part.candidate) for part in series.groups) == 1
    sigmas, minutes = GROSS_SINGLE if single else GROSS_SEVERAL
    if single and series.recent.floor(minutes) < math.log1p(NEIGHBOUR_CHANGE):
        minutes = NEIGHBOUR_MINUTES
    if floor < sigmas * series.noise.minute_sigma or series.recent.floor(minutes) < least:
        return False
    estimate = series.estimate
    return estimate is not None and not is_alone(series, estimate)


def is_settling(series: RatioSeries, least_minutes: int, share: float) -> bool:
    """True while a young candidate has too few minutes, or its change falls: caches that fill slow
    a process for up to an hour."""
    if series.matched_minutes < least_minutes:
        return True
    if series.matched_minutes > SETTLED_MINUTES:
        return False
    first, last = series.recent.thirds()
    return last < share * first


def require_lasting(series: RatioSeries, reading: Reading) -> Reading:
    """The reading if most of the last half hour shows the change, else a calm one: one compilation
    moves the mean for hours."""
    counted = series.recent.minutes
    if 4 * series.recent.shown_share * counted >= 3 * max(counted, series.settings.matched_minutes):
        return reading
    return reading._replace(
        regressed=False, leaning=False, recovered=True, relapsed=False, narrow=False
    )
