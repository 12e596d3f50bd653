"""A simulated fleet of one model, with a candidate in parallel to or after its baseline, with
faults and harmless confounders; numpy and scipy only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dashboard.regressions.judge import InstanceMinute
from tests.bench.fleet_scale import fewer, processes, weekends
from tests.bench.fleet_work import draw_errors, draw_seconds, looked_up

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Generator = np.random.Generator

GPU_SPEED = {"H100": 0.0, "A100": 0.45, "L40S": 0.9}
BUCKETS = ("small", "large")


@dataclass(frozen=True)
class Fleet:
    """Parameters of the simulation; every effect is on the log of a latency unless stated
    otherwise."""

    seed: int = 0
    minutes: int = 720
    """Lifetime of the candidate."""
    sequential: bool = False
    """The candidate replaces the baseline host by host, `stagger` minutes apart; `baseline_per_gpu`
    is the number of hosts."""
    history: int = 0
    """Minutes of the baseline before the candidate."""
    phase: int = 0
    """Minute of the day of the deployment."""
    baseline_per_gpu: int = 3
    candidates: int = 1
    gpus: tuple[str, ...] = ("H100", "A100")
    candidate_gpus: tuple[str, ...] = ()
    """Empty: the candidate runs on the baseline's types in turn."""
    calls_per_minute: float = 300.0
    host_sd: float = 0.030
    process_sd: float = 0.020
    minute_sd: float = 0.030
    minute_memory: float = 0.97
    fleet_sd: float = 0.010
    day_swing: float = 0.05
    traffic_swing: float = 0.6
    mix_swing: float = 0.15
    candidate_mix: float = 0.0
    """Additional share of large shapes on the candidate: a confounder."""
    call_sd: float = 0.25
    tail_chance: float = 0.02
    bursts_per_day: float = 2.0
    stagger: int = 20
    warm_up: int = 3
    eager_instance_chance: float = 0.01
    lone_eager_per_day: float = 0.0
    """Isolated eager calls of every instance."""
    looked_up: float = 1.0
    """Share of seconds in which calls are looked up. The execution mode of the other calls is
    unknown."""
    peak_climb: float = 0.0
    """The peak of a process is a running maximum over the needs of its minutes. This is the average
    excess of these needs over the usual need."""
    rack_sd: float = 0.0
    """A slowly drifting level that all hosts of a rack share; hosts alternate between two racks."""
    day_step: float = 0.0
    """Standard deviation of the level between days."""
    restart_minutes: int = 0
    """Interval of restarts: each restart is a new process of the same unit, which compiles again; 0
    means never."""
    weekend: float = 0.0
    """Speed-up of calls on two days of the week, which also have 60% fewer calls."""
    autoscale: bool = False
    """Every instance of an arm except the first runs only while there is enough traffic; each start
    is a new process on the same host."""
    error_share: float = 0.001
    error_sd: float = 0.5
    """Standard deviation of the instances' error rate, on its log."""
    error_bursts_per_day: float = 0.5
    items_per_call: float = 16.0
    fault: str = "none"
    """none, slow, tail, eager, error (size is a factor) or batches (calls take equally long with
    that share of their items missing)."""
    size: float = 0.0
    affected: float = 1.0
    """Share of the candidate's instances with the fault."""
    onset: int = 0


@dataclass
class Simulated:
    """Arrays by instance and minute (and shape bucket); NaN without calls. `started` is the first
    minute of the process."""

    candidate: NDArray[np.bool_]
    gpu: list[str]
    host: Ints
    process: Ints
    started: Ints
    calls: Ints
    known: Ints
    p50: Floats
    p99: Floats
    eager: Ints
    errors: Ints
    items: Floats
    seconds: Floats


def autoregressive(rng: Generator, rows: int, minutes: int, memory: float, sd: float) -> Floats:
    """A slowly drifting level per row."""
    noise = rng.standard_normal((rows, minutes)) * sd * np.sqrt(1 - memory * memory)
    noise[:, 0] = rng.standard_normal(rows) * sd
    for minute in range(1, minutes):
        noise[:, minute] += memory * noise[:, minute - 1]
    return noise


@dataclass(frozen=True)
class Placed:
    """The instances of the fleet: arm, GPU type, host, and first and last minute."""

    candidate: NDArray[np.bool_]
    gpu: list[str]
    host: Ints
    start: Ints
    end: Ints


def instances(fleet: Fleet) -> Placed:
    """Instances in parallel on their own hosts, or in sequence on the same hosts."""
    base = [gpu for gpu in fleet.gpus for _ in range(fleet.baseline_per_gpu)]
    whole = fleet.history + fleet.minutes
    if fleet.sequential:
        change = [
            fleet.history + min(i * fleet.stagger, fleet.minutes // 2) for i in range(len(base))
        ]
        arms = [False] * len(base) + [True] * len(base)
        hosts = [*range(len(base)), *range(len(base))]
        starts, ends = [0] * len(base) + change, change + [whole] * len(base)
        return Placed(
            np.array(arms), base + base, np.array(hosts), np.array(starts), np.array(ends)
        )
    types = fleet.candidate_gpus or fleet.gpus
    cand = [types[i % len(types)] for i in range(fleet.candidates)]
    starts = [0] * len(base) + [
        fleet.history + min(i * fleet.stagger, fleet.minutes // 2) for i in range(len(cand))
    ]
    count = len(starts)
    arms = [False] * len(base) + [True] * len(cand)
    return Placed(
        np.array(arms), base + cand, np.arange(count), np.array(starts), np.full(count, whole)
    )


def neighbours(rng: Generator, fleet: Fleet, count: int) -> Floats:
    """Bursts of load from neighbours on the same machine."""
    minutes = fleet.history + fleet.minutes
    bumps = np.zeros((count, minutes))
    for i in range(count):
        for _ in range(rng.poisson(fleet.bursts_per_day * minutes / 1440)):
            start = int(rng.integers(0, minutes))
            bumps[i, start : start + 1 + int(rng.geometric(0.1))] += rng.uniform(0.1, 0.4)
    return bumps


def simulate(fleet: Fleet) -> Simulated:
    """Draws the whole fleet; the seed determines everything."""
    rng = np.random.default_rng(fleet.seed)
    placed = instances(fleet)
    count, minutes = len(placed.gpu), fleet.history + fleet.minutes
    clock = np.arange(minutes)
    day = 2 * np.pi * ((clock - fleet.history + fleet.phase) / 1440)
    live = (clock[None] >= placed.start[:, None]) & (clock[None] < placed.end[:, None])
    age = clock[None] - placed.start[:, None]
    faulty = np.zeros(count, bool)
    if fleet.fault != "none":
        candidates = np.flatnonzero(placed.candidate)
        faulty[rng.permutation(candidates)[: max(1, round(fleet.affected * len(candidates)))]] = (
            True
        )
    active = faulty[:, None] & (age >= fleet.onset) & live
    speed = (
        np.array([GPU_SPEED[g] for g in placed.gpu])
        + rng.normal(0, fleet.host_sd, placed.host.max() + 1)[placed.host]
    )
    speed = speed + rng.normal(0, fleet.process_sd, count)
    level = speed[:, None] + autoregressive(
        rng, count, minutes, fleet.minute_memory, fleet.minute_sd
    )
    level += (
        autoregressive(rng, 1, minutes, 0.998, fleet.fleet_sd)
        + fleet.day_swing * np.sin(day - 1.5)[None]
    )
    bumps = neighbours(rng, fleet, count)
    level += bumps + active * slowdown(fleet)
    calls = draw_calls(rng, fleet, day, placed.candidate)
    worse, process, started = worsened(fleet, placed, clock)
    level += worse
    calls = (
        fewer(fleet, clock, calls) * (live & (clock[None] - started >= fleet.warm_up))[..., None]
    )
    p50, p99 = draw_quantiles(
        rng,
        fleet,
        level,
        0.5 * bumps + active * (np.log1p(fleet.size) if fleet.fault == "tail" else 0.0),
        calls,
    )
    trickle = (rng.random(count) < fleet.eager_instance_chance) * rng.uniform(1e-4, 3e-3, count)
    chance = np.where(active & (fleet.fault == "eager"), fleet.size, trickle[:, None])
    known, eager = looked_up(fleet, calls, rng.binomial(calls, chance[..., None]))
    errors, items, seconds = draw_work(fleet, level, active, calls)
    return Simulated(
        placed.candidate,
        placed.gpu,
        placed.host,
        process,
        started,
        calls,
        known,
        p50,
        p99,
        eager,
        errors,
        items,
        seconds,
    )


def worsened(fleet: Fleet, placed: Placed, clock: Ints) -> tuple[Floats, Ints, Ints]:
    """Level that the additional disturbances add, and the process of each instance in each minute
    with its first minute; from a separate random stream."""
    rng = np.random.default_rng([fleet.seed, 1])
    level = np.zeros((len(placed.gpu), len(clock)))
    if fleet.rack_sd:
        level += autoregressive(rng, 2, len(clock), 0.99, fleet.rack_sd)[placed.host % 2]
    if fleet.day_step:
        days = (clock - fleet.history + fleet.phase) // 1440
        level += rng.normal(0, fleet.day_step, 16)[days % 16][None]
    process, started = processes(fleet, placed, clock)
    if fleet.restart_minutes or fleet.autoscale:
        level += np.take_along_axis(
            rng.normal(0, fleet.process_sd, (len(placed.gpu), int(process.max()) + 1)),
            process,
            axis=1,
        )
    return level - fleet.weekend * weekends(fleet, clock)[None], process, started


def draw_work(
    fleet: Fleet, level: Floats, active: NDArray[np.bool_], calls: Ints
) -> tuple[Ints, Floats, Floats]:
    """Failed calls, items and seconds, from a separate random stream: existing seeds keep their
    fleets."""
    rng = np.random.default_rng([fleet.seed, 2])
    errors = draw_errors(rng, fleet, calls, active)
    items = (
        calls
        * fleet.items_per_call
        * (1.0 - active[..., None] * (fleet.size if fleet.fault == "batches" else 0.0))
    )
    items = items * np.exp(
        0.05 * np.stack([autoregressive(rng, *level.shape, 0.9, 1.0) for _ in BUCKETS], axis=2)
    )
    return errors, items, draw_seconds(rng, fleet, level, active, calls)


def slowdown(fleet: Fleet) -> float:
    """Effect of the fault on the median; an eager call takes 1.8 times as long."""
    if fleet.fault == "slow":
        return float(np.log1p(fleet.size))
    return float(np.log1p(0.8) * fleet.size) if fleet.fault == "eager" else 0.0


def draw_calls(rng: Generator, fleet: Fleet, day: Floats, arms: NDArray[np.bool_]) -> Ints:
    """Calls by shape bucket, following the time of day."""
    shape = (len(arms), len(day))
    share = (
        0.35
        + fleet.mix_swing * np.sin(day + 0.7)[None]
        + 0.03 * autoregressive(rng, *shape, 0.98, 1.0)
    )
    share = np.clip(share + arms[:, None] * fleet.candidate_mix, 0.02, 0.95)
    rate = fleet.calls_per_minute * (1 + fleet.traffic_swing * np.sin(day - 1.5))[None]
    rate = rate * np.exp(0.15 * autoregressive(rng, *shape, 0.95, 1.0))
    return np.stack([rng.poisson(rate * (1 - share)), rng.poisson(rate * share)], axis=2)


def draw_quantiles(
    rng: Generator, fleet: Fleet, level: Floats, tail: Floats, calls: Ints
) -> tuple[Floats, Floats]:
    """The log of p50 and p99 in seconds, with the noise of this number of calls; p50 is rounded as
    in a sketch, p99 of few calls is the maximum."""
    middle = np.log(0.008) + np.stack([level, level + np.log(2.5)], axis=2)
    many = np.maximum(calls, 1)
    p50 = middle + rng.standard_normal(middle.shape) * fleet.call_sd * 1.2533 / np.sqrt(many)
    rank = np.ceil(0.99 * many)
    p99 = middle + ndtri((rank - 0.375) / (many + 0.25)) * (fleet.call_sd + 0.05) + tail[..., None]
    p99 = p99 + rng.standard_normal(middle.shape) * (3.7 * fleet.call_sd / np.sqrt(many) + 0.02)
    p99 = p99 + (rng.random(middle.shape) < fleet.tail_chance) * rng.exponential(0.3, middle.shape)
    absent = calls == 0
    return np.where(absent, np.nan, np.round(p50 / 0.01) * 0.01), np.where(absent, np.nan, p99)


def instance_minutes(fleet: Fleet, first_minute: int = 0) -> Iterator[list[InstanceMinute]]:
    """The rows of every minute in order, as the judge reads them; `first_minute` is the first
    minute with history."""
    drawn = simulate(fleet)
    p50, p99 = np.exp(drawn.p50), np.exp(drawn.p99)
    for minute in range(fleet.history + fleet.minutes):
        rows = []
        for i, gpu in enumerate(drawn.gpu):
            name = i + len(drawn.gpu) * int(drawn.process[i, minute])
            for b, bucket in enumerate(BUCKETS):
                calls, eager = int(drawn.calls[i, minute, b]), int(drawn.eager[i, minute, b])
                if calls:
                    rows.append(
                        InstanceMinute(
                            instance=name,
                            unit=i,
                            arm="candidate" if drawn.candidate[i] else "baseline",
                            stratum=(gpu, "default", "torch.compile", "1"),
                            region="forward",
                            bucket=bucket,
                            minute=first_minute + minute,
                            first_minute=first_minute + int(drawn.started[i, minute]),
                            calls=calls,
                            compiled=int(drawn.known[i, minute, b]) - eager,
                            eager=eager,
                            eager_by={"limit": eager} if eager else {},
                            p50=float(p50[i, minute, b]),
                            p99=float(p99[i, minute, b]),
                            host=f"host{drawn.host[i]}",
                            errors=int(drawn.errors[i, minute, b]),
                            items=float(drawn.items[i, minute, b]),
                            latency_sum=float(drawn.seconds[i, minute, b]),
                        )
                    )
        yield rows
