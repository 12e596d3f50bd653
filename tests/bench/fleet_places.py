"""Places of a simulated fleet: which arm runs on which node, and when; numpy only."""

from __future__ import annotations

import numpy as np

from tests.bench.fleet_model import Bools, Fleet, Floats, Ints, Placed


def instances(fleet: Fleet) -> Placed:
    """Instances in parallel on their own hosts, or in sequence on the same hosts."""
    base = [gpu for gpu in fleet.gpus for _ in range(fleet.baseline_per_gpu)]
    return one_after_the_other(fleet, base) if fleet.sequential else side_by_side(fleet, base)


def one_after_the_other(fleet: Fleet, base: list[str]) -> Placed:
    """The candidate takes over host by host."""
    whole = fleet.history + fleet.minutes
    change = [fleet.history + min(i * fleet.stagger, fleet.minutes // 2) for i in range(len(base))]
    return Placed(
        np.repeat([False, True], len(base)),
        base + base,
        2 * take_modes(fleet, base),
        np.arange(2 * len(base)) if fleet.other_nodes else np.tile(np.arange(len(base)), 2),
        np.array([0] * len(base) + [minute + fleet.gap for minute in change]),
        np.array(change + [whole] * len(base)),
    )


def side_by_side(fleet: Fleet, base: list[str]) -> Placed:
    """The candidates run next to the baseline. A replaced baseline instance comes last."""
    types = fleet.candidate_gpus or fleet.gpus
    cand = [types[i % len(types)] for i in range(fleet.candidates)]
    starts = [fleet.history + min(i * fleet.stagger, fleet.minutes // 2) for i in range(len(cand))]
    host = [*range(len(base) + len(cand))]
    if fleet.pairs:
        host[: len(base)] = paired_nodes(base, cand, len(base))
    replaced = cand if fleet.replaces else []
    return Placed(
        np.array([False] * len(base) + [True] * len(cand) + [False] * len(replaced)),
        base + cand + replaced,
        [mode for arm in (base, cand, replaced) for mode in take_modes(fleet, arm)],
        np.array(host + host[len(base) :][: len(replaced)]),
        np.array([0] * len(base) + starts + [0] * len(replaced)),
        np.array(
            [fleet.history + fleet.minutes] * (len(base) + len(cand))
            + [max(start - fleet.gap, 0) for start in starts][: len(replaced)]
        ),
    )


def take_modes(fleet: Fleet, gpus: list[str]) -> list[str]:
    """The mode of each instance: instances of one GPU type take the modes in turn."""
    return [
        fleet.modes[gpus[:number].count(gpu) % len(fleet.modes)] for number, gpu in enumerate(gpus)
    ]


def paired_nodes(base: list[str], cand: list[str], first: int) -> list[int]:
    """The node of each baseline instance: that of a candidate of its GPU type while there is one,
    else a node of its own. `first` is the node of the first candidate."""
    free = [*range(len(cand))]
    found = []
    for number, gpu in enumerate(base):
        match = next((i for i in free if cand[i] == gpu), None)
        if match is not None:
            free.remove(match)
        found.append(number if match is None else first + match)
    return found


def alive(placed: Placed, clock: Ints) -> Bools:
    """True while an instance runs."""
    return np.asarray((clock[None] >= placed.start[:, None]) & (clock[None] < placed.end[:, None]))


def share_factor(fleet: Fleet, placed: Placed, clock: Ints) -> Floats:
    """The calls of an instance relative to equal shares, while the candidate's share of all calls
    is set or grows."""
    live = alive(placed, clock)
    base, cand = (live[placed.candidate == arm].sum(axis=0) for arm in (False, True))
    if not fleet.traffic_share and not fleet.ramp:
        return np.ones(live.shape)
    share = np.full(len(clock), fleet.traffic_share)
    if fleet.ramp:
        share = np.clip((clock - fleet.history) / fleet.ramp, 0.01, 1.0)
    whole = base + cand
    of_base = np.where(cand > 0, (1 - share) * whole / np.maximum(base, 1), 1.0)
    of_cand = share * whole / np.maximum(cand, 1)
    return np.where(placed.candidate[:, None], of_cand[None], of_base[None])
