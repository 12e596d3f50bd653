"""A simulated fleet of one model, with a candidate in parallel to or after its baseline, with
faults and harmless confounders; numpy and scipy only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dashboard.regressions.judge import InstanceMinute
from dashboard.regressions.judge.inputs import Arm
from tests.bench.fleet_clock import ABSENT, reported_minutes
from tests.bench.fleet_disturb import disturb
from tests.bench.fleet_latency import draw_quantiles
from tests.bench.fleet_model import (
    BUCKETS,
    GPU_SPEED,
    MODE_SPEED,
    Bools,
    Fleet,
    Floats,
    Generator,
    Ints,
    Placed,
    autoregressive,
)
from tests.bench.fleet_places import alive, instances
from tests.bench.fleet_scale import fewer
from tests.bench.fleet_work import draw_work, looked_up


@dataclass
class Simulated:
    """Arrays by instance and minute (and shape bucket); NaN without calls. `started` is the first
    minute of the process, `active` is True with the fault."""

    candidate: Bools
    gpu: list[str]
    mode: list[str]
    host: Ints
    process: Ints
    started: Ints
    active: Bools
    calls: Ints
    known: Ints
    p50: Floats
    p99: Floats
    eager: Ints
    errors: Ints
    items: Floats
    seconds: Floats


def neighbours(rng: Generator, fleet: Fleet, count: int) -> Floats:
    """Bursts of load from neighbours on the same machine."""
    minutes = fleet.history + fleet.minutes
    bumps = np.zeros((count, minutes))
    for i in range(count):
        for _ in range(rng.poisson(fleet.bursts_per_day * minutes / 1440)):
            start = int(rng.integers(0, minutes))
            bumps[i, start : start + 1 + int(rng.geometric(0.1))] += rng.uniform(0.1, 0.4)
    return bumps


def choose_faulty(rng: Generator, fleet: Fleet, placed: Placed, clock: Ints) -> Bools:
    """True where an instance has the fault."""
    faulty = np.zeros(len(placed.gpu), bool)
    if fleet.fault != "none":
        candidates = np.flatnonzero(placed.candidate)
        count = max(1, round(fleet.affected * len(candidates)))
        faulty[rng.permutation(candidates)[:count]] = True
    if fleet.fault_gpu:
        faulty &= np.array([gpu == fleet.fault_gpu for gpu in placed.gpu])
    if fleet.fault_mode:
        faulty &= np.array([mode == fleet.fault_mode for mode in placed.mode])
    begun = clock[None] - placed.start[:, None] >= fleet.onset
    return np.asarray(faulty[:, None] & begun & alive(placed, clock))


def draw_level(rng: Generator, fleet: Fleet, placed: Placed, day: Floats) -> tuple[Floats, Floats]:
    """The level of each instance without faults and disturbances, and the bursts of neighbours in
    it."""
    count = len(placed.gpu)
    speed = (
        np.array(
            [GPU_SPEED[g] + MODE_SPEED[m] for g, m in zip(placed.gpu, placed.mode, strict=True)]
        )
        + rng.normal(0, fleet.host_sd, placed.host.max() + 1)[placed.host]
    )
    speed = speed + rng.normal(0, fleet.process_sd, count)
    level = speed[:, None] + autoregressive(
        rng, count, len(day), fleet.minute_memory, fleet.minute_sd
    )
    level += (
        autoregressive(rng, 1, len(day), 0.998, fleet.fleet_sd)
        + fleet.day_swing * np.sin(day - 1.5)[None]
    )
    return level, neighbours(rng, fleet, count)


def simulate(fleet: Fleet) -> Simulated:
    """Draws the whole fleet; the seed determines everything."""
    rng = np.random.default_rng(fleet.seed)
    placed = instances(fleet)
    clock = np.arange(fleet.history + fleet.minutes)
    day = 2 * np.pi * ((clock - fleet.history + fleet.phase) / 1440)
    active = choose_faulty(rng, fleet, placed, clock)
    level, bumps = draw_level(rng, fleet, placed, day)
    found = disturb(fleet, placed, clock)
    level += bumps + active * (0.0 if fleet.fault_bucket else slowdown(fleet)) + found.level
    calls = draw_calls(rng, fleet, day, placed.candidate, found.traffic)
    runs = alive(placed, clock) & (clock[None] - found.started >= fleet.warm_up)
    calls = fewer(fleet, clock, calls) * runs[..., None]
    middle = np.log(0.008) + np.stack([level, level + np.log(2.5)], axis=2)
    if fleet.fault_bucket:
        middle[..., BUCKETS.index(fleet.fault_bucket)] += active * slowdown(fleet)
    tail = 0.5 * bumps + active * (np.log1p(fleet.size) if fleet.fault == "tail" else 0.0)
    p50, p99 = draw_quantiles(rng, fleet, middle, tail + found.tail, calls)
    known, eager = draw_modes(rng, fleet, active, calls)
    errors, items, seconds = draw_work(fleet, middle, active, calls, found.errors)
    drawn = Simulated(
        placed.candidate,
        placed.gpu,
        placed.mode,
        placed.host,
        found.process,
        found.started,
        active,
        calls,
        known,
        p50,
        p99,
        eager,
        errors,
        items,
        seconds,
    )
    return report(fleet, placed, drawn)


def report(fleet: Fleet, placed: Placed, drawn: Simulated) -> Simulated:
    """The fleet as the clocks of its nodes show it, without the minutes that were not reported."""
    true = reported_minutes(fleet, placed, drawn.started.shape[1])
    if true is None:
        return drawn
    shown = {}
    for name in ("process", "started", "calls", "known", "eager", "errors", "items", "seconds"):
        shown[name] = shift(getattr(drawn, name), true)
    p50, p99 = shift(drawn.p50, true), shift(drawn.p99, true)
    shown["calls"] = shown["calls"] * (true != ABSENT)[..., None]
    shown["started"] = np.minimum(shown["started"], np.arange(true.shape[1])[None])
    return replace(drawn, p50=p50, p99=p99, **shown)


def shift(values: Floats | Ints, true: Ints) -> Floats | Ints:
    """The value of each reported minute; any value where it is absent."""
    index = np.maximum(true, 0)
    if values.ndim == 3:
        index = np.repeat(index[..., None], values.shape[2], axis=2)
    return np.take_along_axis(values, index, axis=1)


def first_faulty_minute(fleet: Fleet, drawn: Simulated) -> int | None:
    """The minute of the onset, counted from the deployment; None without a fault."""
    found = np.flatnonzero(drawn.active.any(axis=0))
    return int(found[0]) - fleet.history if len(found) else None


def draw_modes(rng: Generator, fleet: Fleet, active: Bools, calls: Ints) -> tuple[Ints, Ints]:
    """Calls with a known execution mode, and the eager calls among them. A few instances have a
    trickle of eager calls."""
    count = len(calls)
    trickle = (rng.random(count) < fleet.eager_instance_chance) * rng.uniform(1e-4, 3e-3, count)
    chance = np.where(active & (fleet.fault == "eager"), fleet.size, trickle[:, None])
    return looked_up(fleet, calls, rng.binomial(calls, chance[..., None]))


def slowdown(fleet: Fleet) -> float:
    """Effect of the fault on the median; an eager call takes 1.8 times as long."""
    if fleet.fault == "slow":
        return float(np.log1p(fleet.size))
    return float(np.log1p(0.8) * fleet.size) if fleet.fault == "eager" else 0.0


def draw_calls(rng: Generator, fleet: Fleet, day: Floats, arms: Bools, traffic: Floats) -> Ints:
    """Calls by shape bucket, following the time of day and the instance's share of calls."""
    shape = (len(arms), len(day))
    share = (
        0.35
        + fleet.mix_swing * np.sin(day + 0.7)[None]
        + 0.03 * autoregressive(rng, *shape, 0.98, 1.0)
    )
    share = np.clip(share + arms[:, None] * fleet.candidate_mix, 0.02, 0.95)
    rate = fleet.calls_per_minute * (1 + fleet.traffic_swing * np.sin(day - 1.5))[None]
    rate = rate * np.exp(0.15 * autoregressive(rng, *shape, 0.95, 1.0)) * traffic
    return np.stack([rng.poisson(rate * (1 - share)), rng.poisson(rate * share)], axis=2)


def instance_minutes(fleet: Fleet, first_minute: int = 0) -> Iterator[list[InstanceMinute]]:
    """The rows of every minute in order, as the judge reads them; `first_minute` is the first
    minute with history."""
    return rows_of(fleet, simulate(fleet), first_minute)


def rows_of(
    fleet: Fleet, drawn: Simulated, first_minute: int = 0
) -> Iterator[list[InstanceMinute]]:
    """The rows of a simulated fleet, minute by minute."""
    count = len(drawn.gpu)
    strata = [(*place, "torch.compile", "") for place in zip(drawn.gpu, drawn.mode, strict=True)]
    arms: list[Arm] = ["candidate" if arm else "baseline" for arm in drawn.candidate]
    nodes = [f"host{host}" for host in drawn.host]
    columns = zip(*columns_by_minute(drawn), strict=True)
    for minute, (process, started, *values) in enumerate(columns, first_minute):
        rows = []
        for i in range(count):
            name = i + count * process[i]
            unit, host = (i, nodes[i]) if fleet.nodes_known else (name, f"pod{name}")
            of_minute = zip(*(each[i] for each in values), strict=True)
            for bucket, numbers in zip(BUCKETS, of_minute, strict=True):
                calls, known, eager, errors, p50, p99, items, seconds = numbers
                if not calls:
                    continue
                rows.append(
                    InstanceMinute(
                        instance=name,
                        unit=unit,
                        arm=arms[i],
                        stratum=strata[i],
                        region="forward",
                        bucket=bucket,
                        minute=minute,
                        first_minute=first_minute + started[i],
                        calls=calls,
                        compiled=known - eager,
                        eager=eager,
                        eager_by={"limit": eager} if eager else {},
                        p50=p50,
                        p99=p99,
                        host=host,
                        errors=errors,
                        items=items,
                        latency_sum=seconds,
                    )
                )
        yield rows


def columns_by_minute(drawn: Simulated) -> Iterator[list[Any]]:
    """The arrays of the rows as lists by minute and instance (and bucket), which are faster to
    read."""
    for values in (
        drawn.process,
        drawn.started,
        drawn.calls,
        drawn.known,
        drawn.eager,
        drawn.errors,
        np.exp(drawn.p50),
        np.exp(drawn.p99),
        drawn.items,
        drawn.seconds,
    ):
        yield np.moveaxis(values, 1, 0).tolist()
