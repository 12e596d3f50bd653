"""Stalled calls of simulated fleets: each process sees new shapes some time after its start, and
calls wait for the compilation."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dashboard.regressions.judge import InstanceMinute
from tests.bench.fleet_sim import Fleet, instance_minutes


@dataclass(frozen=True)
class Stalling:
    """`shapes` new shapes per process, most within `within` minutes of its start; each takes
    `seconds`, and `waiting` calls wait for it.

    A fault: an additional `share` of the candidate's calls stalls in every minute."""

    shapes: float = 12.0
    within: float = 60.0
    seconds: float = 8.0
    waiting: int = 3
    share: float = 0.0


def stalling_minutes(
    fleet: Fleet, stalling: Stalling, first_minute: int = 0
) -> Iterator[list[InstanceMinute]]:
    """The rows of `instance_minutes` from agents that report stalled calls separately."""
    met: dict[object, list[int]] = {}
    for rows in instance_minutes(fleet, first_minute):
        yield [_stalled(fleet, row, met, stalling) for row in rows]


def _stalled(
    fleet: Fleet, row: InstanceMinute, met: dict[object, list[int]], stalling: Stalling
) -> InstanceMinute:
    if row.instance not in met:
        rng = random.Random(f"{fleet.seed} {row.instance}")
        count = int(
            np.random.default_rng(fleet.seed + hash_of(row.instance)).poisson(stalling.shapes)
        )
        met[row.instance] = [
            row.first_minute + int(rng.expovariate(1 / stalling.within)) for _ in range(count)
        ]
    now = (
        sum(minute == row.minute for minute in met[row.instance]) * stalling.waiting
        if row.bucket == "small"
        else 0
    )
    share = stalling.share if row.arm == "candidate" else 0.0
    count = min(row.calls, now + round(row.calls * share))
    steady = row.calls - count
    seconds = row.latency_sum * steady / row.calls
    rank50, rank99 = (steady < quantile * row.calls for quantile in (0.5, 0.99))
    return replace(
        row,
        compiled=max(row.compiled - count, 0),
        latency_sum=seconds,
        stalled=count,
        stalled_sum=count * stalling.seconds,
        call_seconds=seconds + count * stalling.seconds,
        caller_p50=stalling.seconds if rank50 else row.p50,
        caller_p99=stalling.seconds if rank99 else row.p99,
    )


def hash_of(instance: object) -> int:
    """A number that is the same in every process."""
    return sum(map(ord, str(instance)))
