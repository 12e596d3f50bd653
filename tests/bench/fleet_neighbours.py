"""Another model on the nodes of a simulated fleet: one instance per node, slowed by the same
throttling, power caps and racks; numpy only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dashboard.regressions.judge.neighbours import NeighbourMinute
from tests.bench.fleet_disturb import slow_nodes
from tests.bench.fleet_model import Fleet, autoregressive
from tests.bench.fleet_places import instances

CALLS = 100


def neighbour_rows(fleet: Fleet) -> Iterator[list[NeighbourMinute]]:
    """The rows of the other model by minute. `neighbours` is the part of the slow-down of a node
    that it has."""
    placed = instances(fleet)
    minutes = fleet.history + fleet.minutes
    if not fleet.neighbours:
        yield from ([] for _ in range(minutes))
        return
    rng = np.random.default_rng([fleet.seed, 41])
    nodes, first = np.unique(placed.host, return_index=True)
    level = fleet.neighbours * slow_nodes(fleet, placed, minutes)[first]
    level += rng.normal(0, fleet.host_sd, len(nodes))[:, None]
    level += autoregressive(rng, len(nodes), minutes, fleet.minute_memory, fleet.minute_sd)
    day = 2 * np.pi * (np.arange(minutes) - fleet.history + fleet.phase) / 1440
    p50 = (0.020 * np.exp(level + fleet.day_swing * np.sin(day - 1.0)[None])).T.tolist()
    for minute, values in enumerate(p50, -fleet.history):
        yield [
            NeighbourMinute(minute, f"host{node}", f"other{node}", CALLS, value)
            for node, value in zip(nodes, values, strict=True)
        ]
