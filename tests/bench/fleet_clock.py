"""Clocks of a simulated fleet: clocks that differ or step, and minutes without a report; numpy
only."""

from __future__ import annotations

import numpy as np

from tests.bench.fleet_disturb import spells
from tests.bench.fleet_model import Bools, Fleet, Ints, Placed

ABSENT = -1
STEP_MINUTES = 10


def reported_minutes(fleet: Fleet, placed: Placed, minutes: int) -> Ints | None:
    """By instance and minute of the report, the minute in which it happened; ABSENT without one.
    None if all clocks are right and no report is missing."""
    if not (fleet.clock_skew or fleet.clock_steps_per_day or fleet.missing or fleet.gaps_per_day):
        return None
    count = len(placed.gpu)
    offset = clock_offsets(fleet, placed, minutes)
    found = np.full((count, minutes), ABSENT)
    true = np.arange(minutes)
    for row in range(count):
        shown = true + offset[placed.host[row]]
        within = (shown >= 0) & (shown < minutes)
        # After a step back, the same minute is reported again: the later report counts.
        found[row, shown[within]] = true[within]
    return np.where(absent(fleet, count, minutes), ABSENT, found)


def clock_offsets(fleet: Fleet, placed: Placed, minutes: int) -> Ints:
    """By node and minute, the minutes by which its clock is fast."""
    rng = np.random.default_rng([fleet.seed, 20])
    nodes = int(placed.host.max()) + 1
    skew = rng.integers(-fleet.clock_skew, fleet.clock_skew + 1, nodes)
    offset = np.repeat(skew[:, None], minutes, axis=1)
    rng = np.random.default_rng([fleet.seed, 21])
    for node, when in spells(rng, nodes, minutes, fleet.clock_steps_per_day, (30, 180)):
        offset[node, when] += int(rng.integers(-STEP_MINUTES, STEP_MINUTES + 1))
    return offset


def absent(fleet: Fleet, count: int, minutes: int) -> Bools:
    """True without a report."""
    rng = np.random.default_rng([fleet.seed, 22])
    lost = rng.random((count, minutes)) < fleet.missing
    rng = np.random.default_rng([fleet.seed, 23])
    for row, when in spells(rng, count, minutes, fleet.gaps_per_day, (5, 30)):
        lost[row, when] = True
    return lost
