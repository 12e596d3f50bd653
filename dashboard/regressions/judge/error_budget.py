"""Error budget: divides the false-positive rate of a verdict over metrics, regions, windows and
repeated evaluations.

Algorithm: a weighted Bonferroni division. A metric gets its `weight` of the rate; metrics that move
together (p50, p99, throughput) share one weight, soft metrics pay only for WATCH, and muted metrics
pay nothing. With several regions, half of a metric's part is for all regions together and half is
divided over the single regions.

Every minute is evaluated, so the part of a series is a bound for a whole path. With the running
estimate as a Brownian motion in information time, the chance that its z ever exceeds `z` while the
information grows by the factor `ratio` is, one-sided,

    phi(z) * ((z - 1/z) * ln(ratio) / 2 + 2/z)

`find_tail` inverts this formula and returns the tail of a single test. Differences between
instances do not average out, so information soon stops growing: `ratio` is the prior variance of
the first estimate divided by that of the last one.

Invariants: the parts of all series and windows sum to at most the configured rate; all tests are
one-sided, because only a change for the worse raises a verdict.

Assumptions: independent instances, normal estimates, and increments that are independent in
information time. `python -m tests.bench.calibrate` measures the rate where they do not hold.

Source: Siegmund, Sequential Analysis, 1985, chapter 4; Jennison and Turnbull, Group Sequential
Methods, 2000.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, Protocol

from scipy.special import ndtr, ndtri

BudgetVerdict = Literal["roll_back", "watch"]

MIN_RATIO = 2.0
"""The minimum growth of information: a metric with a constant prior variance is still evaluated at
every minute."""
TESTS_PER_WINDOW = 8.0
"""By simulation: 40,000 Brownian paths over a day, tested every 5 minutes, cross twice-per-window
boundaries four times as often as their rate."""
MAX_SIGMAS = 12.0
POOLED_SHARE = 0.5
"""The part of a level's budget for the pooled estimate of several regions."""
MINUTES_PER_DAY = 1440


class Weighted(Protocol):
    """The fields of a metric that the budget reads."""

    @property
    def weight(self) -> float: ...
    @property
    def hard(self) -> bool: ...
    @property
    def muted(self) -> bool: ...


class ErrorBudget:
    """The budget of one comparison with `regions` outermost regions."""

    __slots__ = ("_rates", "_share", "_weights", "regions")

    def __init__(
        self,
        roll_back_alpha: float,
        watch_alpha: float,
        metrics: Sequence[Weighted],
        regions: int = 1,
    ) -> None:
        live = [metric for metric in metrics if not metric.muted]
        self._rates = {"roll_back": roll_back_alpha, "watch": watch_alpha}
        self._weights = {
            "roll_back": math.fsum(metric.weight for metric in live if metric.hard),
            "watch": math.fsum(metric.weight for metric in live),
        }
        self.regions = max(1, regions)
        self._share = POOLED_SHARE / self.regions if self.regions > 1 else 1.0

    def part(self, metric: Weighted, verdict: BudgetVerdict) -> float:
        """The rate of one metric in one region, for a whole path."""
        total = max(self._weights[verdict], metric.weight) or 1.0
        return self._rates[verdict] * metric.weight / total * self._share

    def pooled(self) -> ErrorBudget:
        """The same budget for the estimate over all regions."""
        found = ErrorBudget.__new__(ErrorBudget)
        found._rates, found._weights, found.regions = self._rates, self._weights, self.regions
        found._share = POOLED_SHARE
        return found


def crossing_rate(z: float, ratio: float) -> float:
    """The chance that the running z ever exceeds `z` while the information grows by `ratio`."""
    growth = math.log(max(ratio, MIN_RATIO)) / 2
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * ((z - 1 / z) * growth + 2 / z)


def find_crossing(tail: float, ratio: float) -> float:
    """The chance of ever reaching a single test with this tail: the sequential p-value."""
    z = tail_sigmas(tail)
    return 1.0 if z <= 1.0 else min(1.0, crossing_rate(min(z, MAX_SIGMAS), ratio))


@lru_cache(maxsize=4096)
def find_tail(rate: float, ratio: float) -> float:
    """The tail of a single one-sided test, so that the chance of ever crossing is `rate` while the
    information grows by `ratio`."""
    low, high = 0.5, MAX_SIGMAS
    for _ in range(60):
        z = (low + high) / 2
        low, high = (z, high) if crossing_rate(z, ratio) > rate else (low, z)
    return min(rate, float(ndtr(-high)))


def find_window_tail(rate: float, window_minutes: int, age_minutes: float) -> float:
    """The tail of one test of a trailing window. The windows of day n get 1/(n(n+1)) of the rate,
    so all days together spend it once. Windows are tested every few minutes: TESTS_PER_WINDOW
    independent tests bound their supremum."""
    day = max(1, math.ceil(age_minutes / MINUTES_PER_DAY))
    windows = TESTS_PER_WINDOW * MINUTES_PER_DAY / window_minutes
    return rate / (day * (day + 1)) / windows


def tail_sigmas(tail: float) -> float:
    """The normal quantile of a tail."""
    return float(-ndtri(tail))
