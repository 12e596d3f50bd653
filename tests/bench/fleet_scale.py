"""Run times of the instances of a simulated fleet: restarts, scaling with traffic, and weekends;
numpy only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tests.bench.fleet_sim import Fleet, Floats, Ints, Placed


def processes(fleet: Fleet, placed: Placed, clock: Ints) -> tuple[Ints, Ints]:
    """The process of an instance in each minute, and its first minute. For a stopped instance the
    first minute is always the next minute."""
    shape = (len(placed.gpu), len(clock))
    process, started = np.zeros(shape, np.int64), np.broadcast_to(placed.start[:, None], shape)
    if fleet.restart_minutes:
        process = np.maximum(clock[None] - placed.start[:, None], 0) // fleet.restart_minutes
        started = placed.start[:, None] + process * fleet.restart_minutes
    if fleet.autoscale:
        on = scaled(fleet, placed, clock)
        risen = on & ~np.pad(on, ((0, 0), (1, 0)))[:, :-1]
        process = np.maximum(np.cumsum(risen, axis=1) - 1, 0)
        begun = np.maximum(
            np.maximum.accumulate(np.where(risen, clock[None], 0), axis=1), placed.start[:, None]
        )
        started = np.where(on, begun, clock[None] + 1)
    return process, started


def scaled(fleet: Fleet, placed: Placed, clock: Ints) -> NDArray[np.bool_]:
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
