"""Simulated short jobs: runs of a benchmark that follow each other, with effects of sessions and of
runs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboard.regressions.judge.inputs import Arm, InstanceMinute
from dashboard.regressions.judge.runs.run import Run

CROWDED_CPU: tuple[float, ...] = (
    *(9.829, 9.829, 8.894, 9.868, 10.335, 10.088, 9.987),
    *(10.403, 9.992, 12.278, 9.951, 10.062, 11.793, 10.112),
)
"""p50 in ms of 14 processes of torch.compile that followed each other on a CPU which another job
shared."""
H200: tuple[float, ...] = (
    *(4.92, 4.834, 4.744, 4.898, 4.758, 4.761, 4.842),
    *(4.762, 4.919, 4.934, 4.793, 4.919, 4.92, 4.914),
)
"""The same on an H200."""


@dataclass(frozen=True)
class World:
    """Effects on the log scale: of a session, of a run, and of a minute. `measured` replaces the
    effect of a run by one of these levels, drawn at random."""

    session: float
    run: float
    minute: float = 0.01
    measured: tuple[float, ...] = ()
    minutes: int = 6
    warm_up: int = 1
    errors: float = 0.0

    def draw_run(self, rng: random.Random) -> float:
        """The effect of one run."""
        if not self.measured:
            return rng.gauss(0.0, self.run)
        mean = math.fsum(map(math.log, self.measured)) / len(self.measured)
        return math.log(rng.choice(self.measured)) - mean + rng.gauss(0.0, self.run)


def simulate_version(
    world: World,
    rng: random.Random,
    version: str,
    arm: Arm,
    start: int,
    runs: int,
    slower: float = 1.0,
) -> list[Run]:
    """The runs of one version, one after the other from this minute on."""
    session = rng.gauss(0.0, world.session)
    return [
        simulate_run(
            world,
            rng,
            f"{version} run {number + 1}",
            version,
            arm,
            start + number * (world.minutes + 1),
            math.log(slower) + session + world.draw_run(rng),
        )
        for number in range(runs)
    ]


def simulate_run(
    world: World, rng: random.Random, unit: str, version: str, arm: Arm, start: int, effect: float
) -> Run:
    """One run: its first minutes are slower, because they warm up."""
    rows = []
    tail = rng.gauss(0.0, 0.02)
    for number in range(world.minutes):
        level = effect + rng.gauss(0.0, world.minute) + (0.5 if number < world.warm_up else 0.0)
        for bucket, factor in (("b1", 1.0), ("b8", 4.0)):
            p50 = 0.01 * factor * math.exp(level)
            calls = rng.randint(180, 220)
            rows.append(
                InstanceMinute(
                    instance=unit,
                    unit=unit,
                    arm=arm,
                    stratum="CPU",
                    region="step",
                    bucket=bucket,
                    minute=start + number,
                    first_minute=start,
                    calls=calls,
                    errors=sum(rng.random() < world.errors for _ in range(calls))
                    if world.errors
                    else 0,
                    compiled=calls,
                    p50=p50,
                    p99=p50 * 1.5 * math.exp(tail + rng.gauss(0.0, 0.05)),
                    items=float(calls),
                    latency_sum=calls * p50 * 1.02,
                )
            )
    return Run(unit, version, arm, start, True, tuple(rows), "ci")


def simulate_sequence(
    world: World,
    seed: int,
    *,
    versions: int = 12,
    candidate_runs: int = 1,
    slower: float = 1.0,
    runs_of: Callable[[random.Random], int] = lambda rng: rng.randint(1, 2),
) -> tuple[Sequence[Run], Sequence[Run]]:
    """The runs of the candidate and of the earlier versions; a version every 90 minutes."""
    rng = random.Random(seed)
    baseline = [
        run
        for number in range(versions)
        for run in simulate_version(
            world, rng, f"c{number:02}", "baseline", 90 * number, runs_of(rng)
        )
    ]
    candidate = simulate_version(
        world, rng, "new", "candidate", 90 * versions, candidate_runs, slower
    )
    return candidate, baseline[-20:]
