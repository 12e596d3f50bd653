"""The formulas: from one number per instance to a change with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar

from scipy.special import stdtrit

from dashboard.regressions.judge.inputs import Stratum

Unit = str | int

LARGEST = 700.0
"""The exponential of a larger log is no float."""


def log_to_change(logarithm: float) -> float:
    """A log as a change; what no float holds is as large as one can be."""
    return math.expm1(min(logarithm, LARGEST))


def log_to_level(logarithm: float) -> float:
    """A log level as the level itself, likewise."""
    return math.exp(min(logarithm, LARGEST))


@lru_cache(maxsize=4096)
def t_quantile(df: int, tail: float) -> float:
    """The value that a t distribution exceeds with probability `tail`; of 96,000 asked for in
    simulated fleets 10 were different."""
    return float(stdtrit(df, 1.0 - tail))


class Total:
    """What one instance, or one host, has added up in one cell; `last` is its last minute."""

    __slots__ = ("difference", "last", "level", "minutes")

    def __init__(self) -> None:
        self.difference = 0.0
        self.minutes = 0
        self.level = 0.0
        self.last = 0


MAX_UNITS = 400
EVICT_AFTER_MINUTES = 1440
"""Minutes without a call after which an instance counts no more, where a comparison has met so many
in one cell: pods come and go."""


L = TypeVar("L", bound="HasLastMinute")


class HasLastMinute(Protocol):
    """What knows when it was last seen."""

    last: int


def evict_units(units: dict[Unit, L], minute: int) -> None:
    """Beyond so many, those go that have been gone for a day, the longest gone first; who still
    calls is never among them."""
    if len(units) <= MAX_UNITS:
        return
    gone = sorted(
        (found.last, str(unit), unit)
        for unit, found in units.items()
        if minute - found.last >= EVICT_AFTER_MINUTES
    )
    for _, _, unit in gone[: len(units) - MAX_UNITS]:
        del units[unit]


class Group(NamedTuple):
    """One stratum: the mean matched log ratio of every instance that counts, the arms' means and
    their difference.

    `k` is what one unit of variance between instances becomes in the difference. In a group of
    `same_hosts` each host is compared with itself: the baseline is 0 by definition, and what one
    day has unlike another is in all hosts.
    """

    stratum: Stratum
    baseline: Mapping[Unit, float]
    candidate: Mapping[Unit, float]
    baseline_mean: float
    candidate_mean: float
    k: float
    same_hosts: bool = False

    @property
    def df(self) -> int:
        """How many of its instances are free to differ."""
        return (
            len(self.candidate) - 1
            if self.same_hosts
            else len(self.baseline) + len(self.candidate) - 2
        )

    @property
    def delta(self) -> float:
        """The change within the stratum."""
        return self.candidate_mean - self.baseline_mean

    def squares(self) -> float:
        """The squared distances of the instances from the mean of their arm."""
        base = [(value - self.baseline_mean) ** 2 for value in self.baseline.values()]
        return math.fsum(
            base + [(value - self.candidate_mean) ** 2 for value in self.candidate.values()]
        )


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


def group(
    stratum: Stratum, baseline: Mapping[Unit, float], candidate: Mapping[Unit, float]
) -> Group:
    """The arms of one stratum; both must have an instance."""
    base, cand = len(baseline), len(candidate)
    return Group(
        stratum,
        baseline,
        candidate,
        math.fsum(baseline.values()) / base,
        math.fsum(candidate.values()) / cand,
        1.0 / cand + 1.0 / base,
    )


def make_host_group(stratum: Stratum, hosts: Mapping[Unit, float]) -> Group:
    """One stratum in which every host is compared with its own past."""
    return Group(
        stratum,
        dict.fromkeys(hosts, 0.0),
        hosts,
        0.0,
        math.fsum(hosts.values()) / len(hosts),
        1.0 / len(hosts),
        same_hosts=True,
    )


def pool_change(groups: Sequence[Group]) -> float:
    """The change over all strata, each weighted by how much its instances can tell."""
    weight = math.fsum([1.0 / part.k for part in groups])
    return math.fsum([part.delta / part.k for part in groups]) / weight


def pool_without_worst(groups: Sequence[Group]) -> float | None:
    """The change over all strata when the instance that shows most of it is left out; None where
    there is no other."""
    most = max(
        (
            (value - part.baseline_mean, number)
            for number, part in enumerate(groups)
            for value in part.candidate.values()
        ),
        default=None,
    )
    if most is None or sum(len(part.candidate) for part in groups) < 2:
        return None
    rest = [part for number, part in enumerate(groups) if number != most[1]]
    worst = groups[most[1]]
    count = len(worst.candidate) - 1
    if count:
        mean = worst.baseline_mean + (len(worst.candidate) * worst.delta - most[0]) / count
        k = 1.0 / count + (0.0 if worst.same_hosts else 1.0 / len(worst.baseline))
        rest.append(worst._replace(candidate_mean=mean, k=k))
    return pool_change(rest)


def combine(
    groups: Sequence[Group], prior_variance: float, prior_df: int, day_variance: float = 0.0
) -> Estimate:
    """Pools the strata; the variance between instances is shrunk to what healthy instances show.

    `day_variance` is how much one day differs from another for all hosts alike: more hosts do not
    take it away.
    """
    df = prior_df + sum(part.df for part in groups)
    variance = (prior_df * prior_variance + math.fsum(part.squares() for part in groups)) / df
    weight = math.fsum(1.0 / part.k for part in groups)
    of_days = math.fsum(1.0 / part.k for part in groups if part.same_hosts) / weight
    error = math.sqrt(variance / weight + day_variance * of_days * of_days)
    return Estimate(pool_change(groups), error, variance, df, tuple(groups))


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
