"""Failed calls, looked-up calls, and total duration of the calls of a simulated fleet; numpy
only."""

from __future__ import annotations

import numpy as np

from tests.bench.fleet_latency import MODES, draw_pareto_seconds, slow_share
from tests.bench.fleet_model import BUCKETS, Bools, Fleet, Floats, Generator, Ints, autoregressive


def draw_work(
    fleet: Fleet, middle: Floats, active: Bools, calls: Ints, failing: Floats
) -> tuple[Ints, Floats, Floats]:
    """Failed calls, items and seconds, from a separate random stream. `middle` is the log of the
    median seconds, `failing` the additional share of errors."""
    rng = np.random.default_rng([fleet.seed, 2])
    errors = draw_errors(rng, fleet, calls, active, failing)
    items = (
        calls
        * fleet.items_per_call
        * (1.0 - active[..., None] * (fleet.size if fleet.fault == "batches" else 0.0))
    )
    items = items * np.exp(
        0.05 * np.stack([autoregressive(rng, *active.shape, 0.9, 1.0) for _ in BUCKETS], axis=2)
    )
    return errors, items, draw_seconds(rng, fleet, middle, active, calls)


def draw_errors(rng: Generator, fleet: Fleet, calls: Ints, active: Bools, failing: Floats) -> Ints:
    """Failed calls: a separate rate per instance, with occasional bursts of some minutes."""
    count, minutes = calls.shape[:2]
    share = fleet.error_share * np.exp(rng.normal(0, fleet.error_sd, count) - fleet.error_sd**2 / 2)
    chance = np.repeat(share[:, None], minutes, axis=1)
    for i in range(count):
        for _ in range(rng.poisson(fleet.error_bursts_per_day * minutes / 1440)):
            start = int(rng.integers(0, minutes))
            chance[i, start : start + int(rng.integers(1, 6))] += rng.uniform(0.005, 0.05)
    if fleet.fault == "error":
        chance = np.where(active, chance * fleet.size, chance)
    if fleet.fault == "fail":
        chance = np.where(active, np.maximum(chance, fleet.size), chance)
    return rng.binomial(calls, np.clip(chance + failing, 0.0, 1.0)[..., None])


def draw_seconds(
    rng: Generator, fleet: Fleet, middle: Floats, active: Bools, calls: Ints
) -> Floats:
    """Total seconds of the calls: the mean of a skewed distribution, with occasional much slower
    calls."""
    if fleet.latency == "pareto":
        return draw_pareto_seconds(fleet, middle, calls)
    mean = np.exp(
        middle
        + fleet.call_sd**2 / 2
        + rng.standard_normal(middle.shape) * fleet.call_sd / np.sqrt(np.maximum(calls, 1))
    )
    slow = (
        0.03 * np.exp(middle) * (active[..., None] * (fleet.size if fleet.fault == "tail" else 0.0))
    )
    outliers = (
        np.exp(middle)
        * (rng.random(middle.shape) < fleet.tail_chance)
        * rng.exponential(0.1, middle.shape)
    )
    if fleet.latency == "bimodal":
        mean = mean * (1 + (MODES - 1) * slow_share(fleet, calls))
    return calls * (mean + slow + outliers)


def looked_up(fleet: Fleet, calls: Ints, eager: Ints) -> tuple[Ints, Ints]:
    """Calls with a known execution mode, and the eager calls among them; from a separate random
    stream."""
    if fleet.looked_up >= 1.0 and not fleet.lone_eager_per_day:
        return calls, eager
    rng = np.random.default_rng([fleet.seed, 3])
    lone = (rng.random(calls.shape[:2]) < fleet.lone_eager_per_day / 1440)[..., None] & (
        np.arange(calls.shape[2]) == 0
    )
    eager = np.minimum(eager + lone, calls)
    seen = rng.binomial(eager, fleet.looked_up)
    return seen + rng.binomial(calls - eager, fleet.looked_up), seen
