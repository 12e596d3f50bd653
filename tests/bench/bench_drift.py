"""Rate at which a healthy version is reported as drifting, and time until a drifting version is
found: `python -m tests.bench.bench_drift [N]`.

Simulated: N deployments per row (5; the results page of the judge shows 30), compared with their
own first day only. No constant was chosen on these seeds."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import Pool
from multiprocessing.pool import Pool as Processes
from statistics import median

from dashboard.regressions.judge import PRODUCTION
from dashboard.regressions.judge.region_state import Region
from tests.bench.fleet_scenarios import PHASE
from tests.bench.fleet_sim import Fleet, instance_minutes
from tests.bench.fleet_worlds import ALL, WORLDS

FIRST_SEED = 2_000_000
DAY = 1440
LEARNED = 1
DAYS = 3
ONSET = 1800
WITHIN = 720
HEAD = (
    "| | deployments | reported slower, days evaluated | +10% found within 12 h, median | "
    "+20% found within 12 h, median | seeds |\n"
    "|---|---|---|---|---|---|"
)


def found_at(fleet: Fleet) -> int | None:
    """The first minute in which the candidate is reported as slower than on its own first day."""
    region = Region("forward", PRODUCTION)
    region.entries = []
    for minute, rows in enumerate(instance_minutes(fleet)):
        for row in rows:
            if row.arm == "candidate" and minute - row.first_minute >= PRODUCTION.warm_up_minutes:
                region.collect(row)
        region.close(minute, None, 1)
        if region.drifted():
            return minute
    return None


def layouts() -> dict[str, Fleet]:
    """Healthy versions of several sizes, and versions on four hosts under adverse
    conditions."""
    alone = Fleet(gpus=("H100",), baseline_per_gpu=1, stagger=2)
    found = {
        f"{count} instance{'s' if count > 1 else ''}": replace(alone, candidates=count)
        for count in (1, 2, 4, 8)
    }
    return found | {
        f"4 instances, {name}": replace(alone, candidates=4, **world.changes)
        for name, world in WORLDS.items()
        if world.changes and world.layouts == ALL and "history" not in world.changes
    }


def line(name: str, fleets: Sequence[Fleet], pool: Processes) -> str:
    """One row of the table."""
    healthy = pool.map(
        found_at, [replace(fleet, minutes=DAYS * DAY) for fleet in fleets], chunksize=1
    )
    false = sum(minute is not None for minute in healthy)
    cells = [f"{false} of {len(fleets)}, {DAYS - LEARNED} days each"]
    for size in (0.10, 0.20):
        slow = [
            replace(fleet, minutes=ONSET + WITHIN, fault="slow", size=size, onset=ONSET)
            for fleet in fleets
        ]
        minutes = [
            minute - ONSET
            for minute in pool.map(found_at, slow, chunksize=1)
            if minute is not None and minute >= ONSET
        ]
        cells.append(f"{len(minutes)}, {median(minutes):.0f} min" if minutes else "0")
    return f"| {name} | {len(fleets)} | {' | '.join(cells)} | {fleets[0].seed}–{fleets[-1].seed} |"


def main() -> None:
    """Prints the table row by row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("deployments", type=int, nargs="?", default=5)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    print(HEAD)
    with Pool(chosen.processes) as pool:
        for number, (name, fleet) in enumerate(layouts().items()):
            first = FIRST_SEED + 10_000 * number
            fleets = [
                replace(fleet, seed=first + i, phase=PHASE * i % DAY)
                for i in range(chosen.deployments)
            ]
            print(line(name, fleets, pool), flush=True)


if __name__ == "__main__":
    main()
