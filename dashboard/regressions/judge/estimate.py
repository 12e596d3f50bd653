"""The formulas: from one number per instance to a change with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from scipy.special import stdtrit

from .minutes import Stratum

Unit = str | int


@lru_cache(maxsize=65536)
def t_quantile(df: int, tail: float) -> float:
    """The value that a t distribution exceeds with probability `tail`."""
    return float(stdtrit(df, 1.0 - tail))


class Group(NamedTuple):
    """One stratum: the mean matched log ratio of every instance that counts, and the difference of the arms.

    `squares` sums the squared distances from the arm's mean, `k` is what one unit of variance becomes in the difference.
    """

    stratum: Stratum
    baseline: Mapping[Unit, float]
    candidate: Mapping[Unit, float]
    baseline_mean: float
    delta: float
    squares: float
    k: float


class Estimate(NamedTuple):
    """A change on the log scale, positive is worse, with its standard error."""

    delta: float
    error: float
    variance: float
    df: int
    groups: tuple[Group, ...]

    def margin(self, tail: float) -> float:
        """Half the width of the interval whose one tail is `tail`."""
        return t_quantile(self.df, tail) * self.error


def group(stratum: Stratum, baseline: Mapping[Unit, float], candidate: Mapping[Unit, float]) -> Group:
    """The change within one stratum; both arms must have an instance."""
    base, cand = len(baseline), len(candidate)
    base_mean = math.fsum(baseline.values()) / base
    cand_mean = math.fsum(candidate.values()) / cand
    squares = [(value - base_mean) ** 2 for value in baseline.values()]
    squares += [(value - cand_mean) ** 2 for value in candidate.values()]
    return Group(stratum, baseline, candidate, base_mean, cand_mean - base_mean, math.fsum(squares), 1.0 / cand + 1.0 / base)


def combine(groups: Sequence[Group], prior_variance: float, prior_df: int) -> Estimate:
    """Pools the strata; the variance between instances is shrunk to what healthy instances show."""
    df = prior_df + sum([len(part.baseline) + len(part.candidate) - 2 for part in groups])
    variance = (prior_df * prior_variance + math.fsum([part.squares for part in groups])) / df
    weight = math.fsum([1.0 / part.k for part in groups])
    delta = math.fsum([part.delta / part.k for part in groups]) / weight
    return Estimate(delta, math.sqrt(variance / weight), variance, df, tuple(groups))


def prior_at(table: Sequence[tuple[int, float]], minutes: float) -> float:
    """The prior variance after so many matched minutes, between the points of its table."""
    before_minutes, before = table[0]
    for at, variance in table:
        if at >= minutes:
            if at == before_minutes:
                return variance
            return before + (variance - before) * (minutes - before_minutes) / (at - before_minutes)
        before_minutes, before = at, variance
    return before
