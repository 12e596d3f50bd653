"""CPU time per minute and memory of the judge, on simulated fleets: `python -m
tests.bench.bench_judge`.

`python -m tests.bench.calibrate` measures detection and false positives."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import replace
from operator import attrgetter

from dashboard.regressions.judge import PRODUCTION, Comparison, Settings, evaluate_comparison
from dashboard.regressions.judge.settings import EAGER, P50
from tests.bench.fleet_sim import Fleet, instance_minutes

VERSIONS = 2000
METRICS = 9


def cost_of(settings: Settings, fleet: Fleet, repeats: int = 7) -> float:
    """Seconds per minute and version, without the creation of the rows. Takes the best of several
    runs for each minute, so that other load adds little."""
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
    """CPU time per minute for many versions, with the production metrics and with nine metrics."""
    levels = [
        replace(P50, name=f"level {i}", value=attrgetter("p50" if i % 2 else "p99"))
        for i in range(METRICS - 1)
    ]
    nine = Settings(metrics=(*levels, EAGER))
    fleets = {
        "4 instances": Fleet(seed=1, gpus=("H100",), minutes=360),
        "8 instances": Fleet(seed=1, candidates=2, minutes=360),
        "8 instances, p50 +50%": Fleet(seed=1, candidates=2, minutes=360, fault="slow", size=0.5),
    }
    for name, fleet in fleets.items():
        small, large = cost_of(PRODUCTION, fleet), cost_of(nine, fleet)
        each, whole = large / METRICS * 1e6, large * VERSIONS
        print(
            f"cost, {name}, 2 buckets: {small * 1e6:.0f} us per minute and version with the "
            "metrics of production;"
        )
        print(
            f"  with {METRICS} metrics {each:.1f} us per metric-minute, {whole:.2f} s per "
            f"minute for {VERSIONS} versions"
        )
    rows = list(instance_minutes(Fleet(seed=1, candidates=2, minutes=360)))
    tracemalloc.start()
    comparison = Comparison(0)
    for minute, each in enumerate(rows):
        comparison.add_minute(minute, each)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    started = time.perf_counter()
    evaluate_comparison(comparison, now_minute=360).as_dict()
    took = (time.perf_counter() - started) * 1e3
    print(
        f"memory: {size / 1024:.0f} KiB per running comparison of 8 instances; outcome as a "
        f"dictionary: {took:.2f} ms"
    )


if __name__ == "__main__":
    print_cost()
