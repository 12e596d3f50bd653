"""Measures the judge: its cost a minute, and on simulated fleets its false roll backs, what it finds and when.

Run as `python -m tests.bench.bench_judge [--deployments 100] [--hours 12]`. Every fleet is simulated; the seeds are printed,
and they are none that a constant was chosen on.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import Pool
from operator import attrgetter
from statistics import median

from dashboard.regressions.judge import PRODUCTION, Comparison, Settings, outcome_of
from dashboard.regressions.judge.settings import EAGER, P50
from tests.bench.fleet_sim import CONFOUNDERS, Fleet, instance_minutes
from tests.dashboard.regressions.fleets import LEARNED

VERSIONS = 2000
METRICS = 9


@dataclass(frozen=True)
class Watched:
    """What was said about one deployment: the first minute of each verdict."""

    roll_back: int | None
    watch: int | None
    healthy: int | None


def watch(job: tuple[Fleet, Settings]) -> Watched:
    """Judges a simulated fleet minute by minute."""
    fleet, settings = job
    comparison = Comparison(0, settings)
    for minute, rows in enumerate(instance_minutes(fleet)):
        comparison.add_minute(minute, rows)
    first: dict[str, int] = {}
    for minute, verdict in comparison.policy.transitions:
        first.setdefault(verdict, minute)
    return Watched(first.get("roll_back"), first.get("watch"), first.get("healthy"))


def print_row(name: str, make: Callable[[int], Fleet], seeds: range, settings: Settings) -> None:
    """Judges one fleet per seed and prints how many were told what."""
    started = time.perf_counter()
    with Pool() as pool:
        found = pool.map(watch, [(make(seed), settings) for seed in seeds], chunksize=2)
    minutes = [each.roll_back for each in found if each.roll_back is not None]
    watched = sum(each.watch is not None for each in found)
    healthy = sum(each.healthy is not None for each in found)
    when = f"{median(minutes):.0f} min" if minutes else "-"
    took = time.perf_counter() - started
    print(
        f"  {name:34} {len(minutes):4} of {len(found)} rolled back, median {when:>8}; WATCH {watched:3}; HEALTHY {healthy:3}; "
        f"seeds {seeds.start}-{seeds.stop - 1}; {took:.0f} s"
    )


def print_verdicts(deployments: int, minutes: int) -> None:
    """False alarms first, then what is found, with the production prior and with one learned on the simulator."""
    for label, settings in (("prior of production", PRODUCTION), ("prior learned on the simulator", LEARNED)):
        print(f"{label}, {minutes / 60:g} h each, simulated:")
        for layout, candidates in (("1 v 3+3", 1), ("2 v 3+3", 2)):
            base = Fleet(minutes=minutes, candidates=candidates)
            seeds = range(910_000 + 10_000 * candidates, 910_000 + 10_000 * candidates + deployments)
            print_row(f"healthy, {layout}", lambda seed, base=base: replace(base, seed=seed), seeds, settings)
            for size in (0.1, 0.2, 0.5):
                slow = replace(base, fault="slow", size=size)
                few = range(seeds.start + 5000, seeds.start + 5000 + max(10, deployments // 3))
                print_row(f"p50 +{size:.0%}, {layout}", lambda seed, slow=slow: replace(slow, seed=seed), few, settings)
        for name, changes in CONFOUNDERS.items():
            confounded = replace(Fleet(minutes=minutes, candidates=2), **changes)
            few = range(950_000, 950_000 + max(10, deployments // 3))
            if name != "same":
                print_row(f"healthy, {name}", lambda seed, made=confounded: replace(made, seed=seed), few, settings)


def cost_of(settings: Settings, fleet: Fleet, repeats: int = 7) -> float:
    """Seconds a minute and version, without making the rows: every minute's best of some runs, so that a busy machine adds little."""
    minutes = list(instance_minutes(fleet))
    best = [float("inf")] * len(minutes)
    for _ in range(repeats):
        comparison = Comparison(0, settings)
        for minute, rows in enumerate(minutes):
            started = time.perf_counter()
            comparison.add_minute(minute, rows)
            best[minute] = min(best[minute], time.perf_counter() - started)
    return sum(best) / len(best)


def print_cost() -> None:
    """CPU time a minute for many versions, with the production table and with nine metrics in it."""
    levels = [replace(P50, name=f"level {i}", value=attrgetter("p50" if i % 2 else "p99")) for i in range(METRICS - 1)]
    nine = Settings(metrics=(*levels, EAGER))
    fleets = {
        "4 instances": Fleet(seed=1, gpus=("H100",), minutes=360),
        "8 instances": Fleet(seed=1, candidates=2, minutes=360),
        "8 instances, p50 +50%": Fleet(seed=1, candidates=2, minutes=360, fault="slow", size=0.5),
    }
    for name, fleet in fleets.items():
        small, large = cost_of(PRODUCTION, fleet), cost_of(nine, fleet)
        each, whole = large / METRICS * 1e6, large * VERSIONS
        print(f"cost, {name}, 2 buckets: {small * 1e6:.0f} us a minute and version with the metrics of production;")
        print(f"  with {METRICS} metrics {each:.1f} us a metric-minute, {whole:.2f} s a minute for {VERSIONS} versions")
    rows = list(instance_minutes(Fleet(seed=1, candidates=2, minutes=360)))
    tracemalloc.start()
    comparison = Comparison(0)
    for minute, each in enumerate(rows):
        comparison.add_minute(minute, each)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    started = time.perf_counter()
    outcome_of(comparison, now_minute=360).as_dict()
    took = (time.perf_counter() - started) * 1e3
    print(f"memory: {size / 1024:.0f} KiB a running comparison of 8 instances; outcome as a dictionary: {took:.2f} ms")


def main() -> None:
    """Cost, then verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--deployments", type=int, default=100)
    parser.add_argument("--hours", type=float, default=12.0)
    parser.add_argument("--cost-only", action="store_true")
    chosen = parser.parse_args()
    print_cost()
    sys.stdout.flush()
    if not chosen.cost_only:
        print_verdicts(chosen.deployments, round(chosen.hours * 60))


if __name__ == "__main__":
    main()
