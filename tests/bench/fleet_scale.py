"""Run times of the instances of a simulated fleet: restarts, scaling with traffic, and weekends;
numpy only."""

from __future__ import annotations

import numpy as np

from tests.bench.fleet_model import Bools, Fleet, Floats, Ints, Placed


def processes(fleet: Fleet, placed: Placed, clock: Ints) -> tuple[Ints, Ints]:
    """The process of an instance in each minute, and its first minute. For a stopped instance the
    first minute is always the next minute."""
    start = placed.start[:, None]
    if fleet.autoscale:
        on = scaled(fleet, placed, clock)
        risen = on & ~np.pad(on, ((0, 0), (1, 0)))[:, :-1]
        process = np.maximum(np.cumsum(risen, axis=1) - 1, 0)
        begun = np.maximum.accumulate(np.where(risen, clock[None], 0), axis=1)
        return process, np.where(on, np.maximum(begun, start), clock[None] + 1)
    begins = restarted(fleet, placed, clock)
    started = np.maximum.accumulate(np.where(begins, clock[None], start), axis=1)
    return np.cumsum(begins, axis=1), started


def restarted(fleet: Fleet, placed: Placed, clock: Ints) -> Bools:
    """True in the first minute of every process of an instance except its first one."""
    age = clock[None] - placed.start[:, None]
    begins = np.zeros(age.shape, bool)
    if fleet.restarts_per_day:
        rng = np.random.default_rng([fleet.seed, 4])
        begins |= rng.random(age.shape) < fleet.restarts_per_day / 1440
    if fleet.redeploy:
        begins |= placed.candidate[:, None] & (age == fleet.redeploy)
    return begins & (age > 0)


def scaled(fleet: Fleet, placed: Placed, clock: Ints) -> Bools:
    """True where an instance runs at the given traffic; the first instance of an arm always
    runs."""
    demand = (1 + np.sin(2 * np.pi * ((clock - fleet.history + fleet.phase) / 1440) - 1.5)) / 2
    on = np.ones((len(placed.gpu), len(clock)), bool)
    for arm in (False, True):
        members = np.flatnonzero(placed.candidate == arm)
        for place, member in enumerate(members):
            on[member] = demand >= 0.8 * place / len(members)
    return on


def weekends(fleet: Fleet, clock: Ints) -> Floats:
    """1 on two days of seven; the seed determines the first of them."""
    days = (clock - fleet.history + fleet.phase) // 1440 + fleet.seed
    return np.where(days % 7 < 2, 1.0, 0.0)


def fewer(fleet: Fleet, clock: Ints, calls: Ints) -> Ints:
    """Reduces the calls on a weekend, if the fleet has weekends."""
    if not fleet.weekend:
        return calls
    rng = np.random.default_rng([fleet.seed, 3])
    return rng.binomial(calls, (1.0 - 0.6 * weekends(fleet, clock))[None, :, None])
