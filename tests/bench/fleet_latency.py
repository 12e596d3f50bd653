"""Quantiles of the call durations of a simulated fleet, with the noise of their number of calls;
numpy and scipy only.

Lognormal durations use the normal approximation of a sample quantile. Pareto and bimodal durations
use its exact distribution: the order statistic of rank r of n uniform numbers is
Beta(r, n + 1 - r)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from tests.bench.fleet_model import Fleet, Floats, Generator, Ints, autoregressive

PARETO_INDEX = 2.0
"""The variance of durations is infinite."""
MODES = 3.0
"""Factor between the two modes."""
SKETCH = 0.01


def draw_quantiles(
    rng: Generator, fleet: Fleet, middle: Floats, tail: Floats, calls: Ints
) -> tuple[Floats, Floats]:
    """The log of p50 and p99 in seconds; NaN without calls. `middle` is the log of the median. p50
    is rounded as in a sketch, p99 of few calls is the maximum."""
    draw = {"pareto": pareto, "bimodal": bimodal}.get(fleet.latency, lognormal)
    p50, p99 = draw(rng, fleet, middle, calls)
    p99 = p99 + tail[..., None]
    p99 = p99 + (rng.random(middle.shape) < fleet.tail_chance) * rng.exponential(0.3, middle.shape)
    absent = calls == 0
    return np.where(absent, np.nan, np.round(p50 / SKETCH) * SKETCH), np.where(absent, np.nan, p99)


def lognormal(rng: Generator, fleet: Fleet, middle: Floats, calls: Ints) -> tuple[Floats, Floats]:
    """Quantiles of lognormal durations with a slightly heavier tail."""
    many = np.maximum(calls, 1)
    p50 = middle + rng.standard_normal(middle.shape) * fleet.call_sd * 1.2533 / np.sqrt(many)
    rank = np.ceil(0.99 * many)
    p99 = middle + ndtri((rank - 0.375) / (many + 0.25)) * (fleet.call_sd + 0.05)
    return p50, p99 + rng.standard_normal(middle.shape) * (
        3.7 * fleet.call_sd / np.sqrt(many) + 0.02
    )


def ranked(rng: Generator, rank: Floats | Ints, many: Ints) -> Floats:
    """The order statistic of this rank of uniform numbers."""
    return np.asarray(rng.beta(rank, many + 1 - rank))


def pareto(rng: Generator, fleet: Fleet, middle: Floats, calls: Ints) -> tuple[Floats, Floats]:
    """Quantiles of Pareto durations."""
    many = np.maximum(calls, 1)
    p50, p99 = (
        middle - (np.log1p(-ranked(rng, np.ceil(quantile * many), many)) + np.log(2)) / PARETO_INDEX
        for quantile in (0.5, 0.99)
    )
    return p50, p99


def draw_pareto_seconds(fleet: Fleet, middle: Floats, calls: Ints) -> Floats:
    """Total seconds of Pareto durations: their mean without the longest call, and this call."""
    rng = np.random.default_rng([fleet.seed, 31])
    many = np.maximum(calls, 1)
    shortest = np.exp(middle) / 2 ** (1 / PARETO_INDEX)
    longest = shortest * ranked(rng, np.ones(calls.shape), many) ** (-1 / PARETO_INDEX)
    usual = (
        shortest
        * PARETO_INDEX
        / (PARETO_INDEX - 1)
        * np.exp(rng.standard_normal(calls.shape) * 0.5 / np.sqrt(many))
    )
    return np.where(calls > 0, (many - 1) * usual + longest, 0.0)


def slow_share(fleet: Fleet, calls: Ints) -> Floats:
    """The share of calls in the slower mode: drifts around 45% by instance, so that p50 lies in
    either mode."""
    rng = np.random.default_rng([fleet.seed, 30])
    share = 0.45 + autoregressive(rng, *calls.shape[:2], 0.98, 0.04)
    return np.asarray(np.clip(share, 0.02, 0.98)[..., None])


def bimodal(rng: Generator, fleet: Fleet, middle: Floats, calls: Ints) -> tuple[Floats, Floats]:
    """Quantiles of a mixture of two modes that do not overlap: the rank within the mode that holds
    the quantile."""
    many = np.maximum(calls, 1)
    slow = rng.binomial(many, np.broadcast_to(slow_share(fleet, calls), calls.shape))
    found = []
    for quantile in (0.5, 0.99):
        rank = np.ceil(quantile * many)
        upper = rank > many - slow
        size = np.where(upper, slow, many - slow)
        within = np.where(upper, rank - (many - slow), rank)
        found.append(
            middle
            + upper * np.log(MODES)
            + fleet.call_sd * ndtri(ranked(rng, within, np.maximum(size, within)))
        )
    return found[0], found[1]
