"""Process metrics of a simulated fleet: memory, recompiles, and costs of process starts; numpy
only.

Uses separate random draws: the calls of a `Fleet` are the same with and without this module. In
addition to the faults of `fleet_sim`, `Fleet.fault` may be memory, host_memory or leak (`size` is a
share, a share, a share per hour), compile (a factor), cache (the share of lookups that hit) or
recompiles (per hour)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dashboard.regressions.judge import InstanceProcessMinute, InstanceStart
from dashboard.regressions.judge.process.inputs import START_MINUTES
from tests.bench.fleet_clock import ABSENT, reported_minutes
from tests.bench.fleet_model import (
    GPU_SPEED,
    Bools,
    Fleet,
    Floats,
    Generator,
    Ints,
    autoregressive,
)
from tests.bench.fleet_places import instances
from tests.bench.fleet_scale import processes

GPU_BYTES, HOST_BYTES, GPU_SIZE = 30e9, 12e9, 80e9
COMPILE_SECONDS, COMPILE_SD, STARTUP_SECONDS = 45.0, 0.18, 15.0
MEMORY_SD, HOST_MEMORY_SD = 0.015, 0.03
RECOMPILES_WARM, RECOMPILES_AN_HOUR = 12.0, 0.3
HIT_SHARE, HIT_SD, LOOKUPS_AT_START = 0.95, 0.02, 200.0
HIT_SECONDS, MISS_SECONDS = 0.5, 2.0
BELOW_PEAK = (0.02, 0.15)
OTHER_DRAWS = 7_000_003


@dataclass
class Processes:
    """Arrays by instance, and by minute for values per minute."""

    candidate: Bools
    gpu: list[str]
    started: Ints
    ended: Ints
    process: Ints
    begun: Ints
    """The first minute of the process that runs in each minute; a later minute where no process
    runs."""
    gpu_peak: Floats
    gpu_allocated: Floats
    host_rss: Floats
    recompiles: Ints
    starts: list[list[InstanceStart]]
    """By instance and process."""


def simulate_processes(fleet: Fleet) -> Processes:
    """Draws the process metrics; the seed determines everything."""
    rng = np.random.default_rng((fleet.seed, OTHER_DRAWS))
    placed = instances(fleet)
    arms, gpu, started = placed.candidate, placed.gpu, placed.start
    count, minutes = len(gpu), fleet.history + fleet.minutes
    process, begun = processes(fleet, placed, np.arange(minutes))
    age = np.arange(minutes)[None] - begun
    faulty = np.zeros(count, bool)
    if fleet.fault != "none":
        candidates = np.flatnonzero(arms)
        faulty[rng.permutation(candidates)[: max(1, round(fleet.affected * len(candidates)))]] = (
            True
        )
    active = faulty[:, None] & (age >= fleet.onset)
    memory = draw_memory(rng, fleet, age, active, arms)
    return Processes(
        arms,
        gpu,
        started,
        placed.end,
        process,
        begun,
        np.minimum(np.exp(draw_peak(fleet, memory, process)), GPU_SIZE),
        np.minimum(np.exp(draw_held(fleet, memory)), GPU_SIZE),
        np.exp(draw_host_memory(rng, fleet, active)),
        draw_recompiles(rng, fleet, age, active),
        draw_starts(rng, fleet, gpu, faulty, process[:, -1]),
    )


def draw_memory(rng: Generator, fleet: Fleet, age: Ints, active: Bools, arms: Bools) -> Floats:
    """The log of peak bytes: settles over the first hour, drifts a little, and follows the mix of
    shapes."""
    count, minutes = age.shape
    level = (
        np.log(GPU_BYTES)
        + rng.normal(0, MEMORY_SD, count)[:, None]
        + 0.01 * (1 - np.exp(-np.maximum(age, 0) / 30))
    )
    level = level + 0.004 * autoregressive(rng, count, minutes, 0.99, 1.0)
    mix = (
        fleet.mix_swing * np.sin(2 * np.pi * np.arange(minutes) / 1440 + 0.7)[None]
        + arms[:, None] * fleet.candidate_mix
    )
    level = level + 0.02 * mix
    if fleet.fault == "memory":
        level = level + active * np.log1p(fleet.size)
    if fleet.fault == "leak":
        level = level + active * fleet.size * np.maximum(age - fleet.onset, 0) / 60.0
    return np.asarray(level)


def draw_peak(fleet: Fleet, memory: Floats, process: Ints) -> Floats:
    """The log of peak bytes: the running maximum of each process, whose minutes occasionally need
    more than usual."""
    if not fleet.peak_climb:
        return memory
    rng = np.random.default_rng((fleet.seed, OTHER_DRAWS, 2))
    needs = memory + rng.exponential(fleet.peak_climb, memory.shape)
    for number in range(int(process.max()) + 1):
        of_process = process == number
        highest = np.maximum.accumulate(np.where(of_process, needs, -np.inf), axis=1)
        needs = np.where(of_process, highest, needs)
    return np.asarray(needs)


def draw_held(fleet: Fleet, memory: Floats) -> Floats:
    """The log of bytes in use at occasional samples: below the peak by a random amount."""
    rng = np.random.default_rng((fleet.seed, OTHER_DRAWS, 1))
    return np.asarray(memory - rng.uniform(*BELOW_PEAK, memory.shape))


def draw_host_memory(rng: Generator, fleet: Fleet, active: Bools) -> Floats:
    """The log of resident bytes."""
    level = (
        np.log(HOST_BYTES)
        + rng.normal(0, HOST_MEMORY_SD, len(active))[:, None]
        + autoregressive(rng, *active.shape, 0.97, 0.01)
    )
    return np.asarray(
        level + active * (np.log1p(fleet.size) if fleet.fault == "host_memory" else 0.0)
    )


def draw_recompiles(rng: Generator, fleet: Fleet, age: Ints, active: Bools) -> Ints:
    """Many recompiles at the start, then few, in clusters."""
    clumped = RECOMPILES_AN_HOUR / 60 * (rng.random(age.shape) < 0.2) * 5
    rate = np.where(age < 15, RECOMPILES_WARM / 15, clumped) * (age >= 0)
    if fleet.fault == "recompiles":
        rate = rate + active * fleet.size / 60
    return np.asarray(rng.poisson(rate * np.exp(rng.normal(0, 0.5, len(age)))[:, None]))


def draw_starts(
    rng: Generator, fleet: Fleet, gpu: list[str], faulty: Bools, last: Ints
) -> list[list[InstanceStart]]:
    """The starts of all processes of every instance; `last` is the number of its last process."""
    found = [[draw_start(rng, fleet, *each)] for each in zip(gpu, faulty, strict=True)]
    later = np.random.default_rng((fleet.seed, OTHER_DRAWS, 3))
    for starts, kind, bad, number in zip(found, gpu, faulty, last, strict=True):
        starts.extend(draw_start(later, fleet, kind, bad) for _ in range(number))
    return found


def draw_start(rng: Generator, fleet: Fleet, kind: str, faulty: bool) -> InstanceStart:
    """Compile time, cold start and cache results of one process."""
    slower = fleet.size if fleet.fault == "compile" and faulty else 1.0
    compiling = (
        COMPILE_SECONDS * slower * float(np.exp(0.5 * GPU_SPEED[kind] + rng.normal(0, COMPILE_SD)))
    )
    hit = (
        fleet.size
        if fleet.fault == "cache" and faulty
        else float(np.clip(HIT_SHARE + rng.normal(0, HIT_SD), 0.5, 0.999))
    )
    lookups = int(rng.poisson(LOOKUPS_AT_START))
    hits = int(rng.binomial(lookups, hit))
    spread = [float(np.sum(np.exp(rng.normal(0, 0.5, n)))) for n in (hits, lookups - hits)]
    return InstanceStart(
        compile_time=compiling,
        cold_start=compiling + STARTUP_SECONDS * float(np.exp(rng.normal(0, 0.1))),
        hits=hits,
        misses=lookups - hits,
        hit_seconds=HIT_SECONDS * spread[0],
        miss_seconds=MISS_SECONDS * spread[1],
    )


def instance_states(fleet: Fleet, first_minute: int = 0) -> Iterator[list[InstanceProcessMinute]]:
    """The rows of every minute in order, next to the rows of calls; `first_minute` is the first
    minute with history."""
    drawn = simulate_processes(fleet)
    count, minutes = drawn.begun.shape
    true = reported_minutes(fleet, instances(fleet), minutes)
    shown = (np.broadcast_to(np.arange(minutes), (count, minutes)) if true is None else true).T
    arms = ["candidate" if arm else "baseline" for arm in drawn.candidate]
    ended, gpu_peak, host_rss = drawn.ended.tolist(), *map(whole, (drawn.gpu_peak, drawn.host_rss))
    recompiles, gpu_allocated = drawn.recompiles.T.tolist(), whole(drawn.gpu_allocated)
    process, begun = drawn.process.T.tolist(), drawn.begun.T.tolist()
    for minute, at in enumerate(shown.tolist()):
        rows = []
        for i, gpu in enumerate(drawn.gpu):
            now = at[i]
            if now == ABSENT or not begun[now][i] <= now < ended[i]:
                continue
            name = i + count * process[now][i]
            rows.append(
                InstanceProcessMinute(
                    instance=name,
                    unit=i if fleet.nodes_known else name,
                    arm=arms[i],
                    stratum=(gpu,),
                    minute=first_minute + minute,
                    first_minute=first_minute + min(begun[now][i], minute),
                    gpu_peak=gpu_peak[now][i],
                    host_rss=host_rss[now][i],
                    recompiles=recompiles[now][i],
                    start=drawn.starts[i][process[now][i]]
                    if now - begun[now][i] >= START_MINUTES
                    else None,
                    gpu_allocated=gpu_allocated[now][i],
                    life=name if fleet.restarts and fleet.nodes_known else None,
                )
            )
        yield rows


def whole(values: Floats) -> list[list[int]]:
    """Whole bytes by minute and instance."""
    return [*values.T.astype(np.int64).tolist()]
