"""The fleets that calibrate the judge: healthy, confounded, disturbed and faulty ones, each with
its own seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dashboard.regressions.judge import Comparison, Settings
from tests.bench.fleet_sim import Fleet, instance_minutes, simulate
from tests.bench.fleet_worlds import CONFOUNDERS, RARE, WORSE, WORSE_STILL
from tests.bench.judge_labels import Labels
from tests.bench.judge_peers import Alarms, alarms
from tests.bench.process_sim import instance_states

FIRST_SEED = 5_000_000
"""No constant and no rule was chosen on a seed from this number on."""
SEEDS_A_TRIAL = 10_000
PHASE = 173
"""Minutes between the times of day of two consecutive deployments."""

CANARY, TWO = "1 v 3+3", "2 v 3+3"
SEQUENTIAL = "4 hosts, one after the other"
FOUR_HOSTS = Fleet(sequential=True, gpus=("H100",), baseline_per_gpu=4, history=1440)
LAYOUTS = {CANARY: Fleet(candidates=1), TWO: Fleet(candidates=2), SEQUENTIAL: FOUR_HOSTS}
FAULTS: dict[str, dict[str, object]] = {
    "p50 +5%": {"fault": "slow", "size": 0.05},
    "p50 +10%": {"fault": "slow", "size": 0.10},
    "p50 +20%": {"fault": "slow", "size": 0.20},
    "p50 +50%": {"fault": "slow", "size": 0.50},
    "p99 alone +30%": {"fault": "tail", "size": 0.30},
    "errors .1 to 1%": {"fault": "error", "size": 10.0},
    "half the calls eager on 30% of instances": {"fault": "eager", "size": 0.5, "affected": 0.3},
    "a fifth fewer items in the same time": {"fault": "batches", "size": 0.2},
}
PROCESS_FAULTS: dict[str, dict[str, object]] = {
    "GPU memory +20%": {"fault": "memory", "size": 0.20},
    "a leak of 2% an hour": {"fault": "leak", "size": 0.02},
    "twice the compile time": {"fault": "compile", "size": 2.0},
    "cache hits 95 to 40%": {"fault": "cache", "size": 0.40},
    "30 recompiles an hour": {"fault": "recompiles", "size": 30.0},
}
"""Faults of processes; compile time, caches and recompiles alone require WATCH."""
RARE_FAULTS: dict[str, dict[str, object]] = {
    "wholly eager, 5 calls a minute, a tenth looked up": {
        "fault": "eager",
        "size": 1.0,
        "calls_per_minute": 5.0,
        "looked_up": 0.1,
    },
    "a leak of 2% an hour below a running maximum": {
        "fault": "leak",
        "size": 0.02,
        "peak_climb": 0.02,
    },
}


@dataclass(frozen=True)
class Trial:
    """One row of the table: fleets that differ only in their seeds. `part` is the share of the N
    deployments that the row gets."""

    group: str
    name: str
    fleet: Fleet
    part: float
    number: int = 0

    def fleets(self, deployments: int, minutes: int) -> list[Fleet]:
        """The fleets of all deployments, at different times of day."""
        first = FIRST_SEED + SEEDS_A_TRIAL * self.number
        return [
            replace(self.fleet, minutes=minutes, seed=first + i, phase=PHASE * i % 1440)
            for i in range(self.count(deployments))
        ]

    def count(self, deployments: int) -> int:
        """Number of deployments of this row for N requested ones."""
        return max(4, round(deployments * self.part))


@dataclass(frozen=True)
class Watched:
    """Results of one deployment: the first minute of each verdict and label, the HEALTHY state at
    each evaluation, and the peers."""

    roll_back: int | None
    watch: int | None
    labelled: dict[str, int]
    healthy: tuple[bool, ...]
    peers: Alarms


def trials() -> list[Trial]:
    """Every row, in order. The order determines the seeds, so new rows go to the end."""
    found = [
        Trial("healthy", f"same version, {CANARY}", LAYOUTS[CANARY], 1 / 7),
        Trial("healthy", f"same version, {TWO}", LAYOUTS[TWO], 1 / 7),
    ]
    confounded = {name: changes for name, changes in CONFOUNDERS.items() if name != "same"}
    found += [
        Trial("confounded", f"{name}, {TWO}", replace(LAYOUTS[TWO], **changes), 1 / 7)
        for name, changes in confounded.items()
    ]
    for hours in (24, 12, 6):
        for way, stagger in (("host by host", 20), ("all at once", 0)):
            fleet = replace(FOUR_HOSTS, history=60 * hours, stagger=stagger)
            found.append(Trial("sequential, healthy", f"{hours} h of history, {way}", fleet, 1 / 6))
    sides = {
        n: Fleet(gpus=("H100",), baseline_per_gpu=n, candidates=n, stagger=2) for n in (2, 3, 6)
    }
    found += [Trial("healthy, by size", f"{n} v {n}", fleet, 1 / 10) for n, fleet in sides.items()]
    for size in (0.10, 0.20):
        slow = {n: replace(fleet, fault="slow", size=size) for n, fleet in sides.items()}
        found += [
            Trial("called HEALTHY wrongly?", f"p50 +{size * 100:.0f}%, {n} v {n}", fleet, 1 / 10)
            for n, fleet in slow.items()
        ]
    for name, changes in FAULTS.items():
        found += [
            Trial("fault", f"{name}, {layout}", replace(fleet, **changes), 1 / 10)
            for layout, fleet in LAYOUTS.items()
        ]
    for name, changes in WORSE.items():
        for layout in (TWO, SEQUENTIAL):
            found.append(
                Trial(
                    "worse world, healthy",
                    f"{name}, {layout}",
                    replace(LAYOUTS[layout], **changes),
                    1 / 10,
                )
            )
    for name, changes in WORSE_STILL.items():
        for layout in (TWO, SEQUENTIAL):
            found.append(
                Trial(
                    "worse world still, healthy",
                    f"{name}, {layout}",
                    replace(LAYOUTS[layout], **changes),
                    1 / 10,
                )
            )
    for name, changes in PROCESS_FAULTS.items():
        found += [
            Trial("fault of processes", f"{name}, {layout}", replace(fleet, **changes), 1 / 20)
            for layout, fleet in LAYOUTS.items()
        ]
    for name, changes in RARE.items():
        for layout in (TWO, SEQUENTIAL):
            # A young process is compared with an old one.
            fleet = replace(LAYOUTS[layout], **{"history": 1440, **changes})
            found.append(
                Trial("rules without statistics, healthy", f"{name}, {layout}", fleet, 1 / 10)
            )
    for name, changes in RARE_FAULTS.items():
        found += [
            Trial(
                "rules without statistics, fault",
                f"{name}, {layout}",
                replace(fleet, **changes),
                1 / 20,
            )
            for layout, fleet in LAYOUTS.items()
        ]
    return [replace(trial, number=number) for number, trial in enumerate(found)]


def watch(job: tuple[Fleet, Settings]) -> Watched:
    """Runs the judge on a simulated fleet minute by minute, like on a live one."""
    fleet, settings = job
    comparison = Comparison(0, settings, with_past=fleet.history > 0)
    calls, processes = (
        instance_minutes(fleet, -fleet.history),
        instance_states(fleet, -fleet.history),
    )
    labels = Labels()
    for minute, (rows, states) in enumerate(zip(calls, processes, strict=True), -fleet.history):
        comparison.add_minute(minute, rows, states)
        labels.step(minute, comparison)
    first: dict[str, int] = {}
    healthy = [False] * len(settings.looks)
    for minute, verdict in comparison.policy.transitions:
        first.setdefault(verdict, minute)
        for number, look in enumerate(settings.looks):
            if minute <= look:
                healthy[number] = verdict == "healthy"
    stood = tuple(
        is_healthy
        for is_healthy, look in zip(healthy, settings.looks, strict=True)
        if look <= fleet.minutes
    )
    return Watched(
        first.get("roll_back"),
        first.get("watch"),
        labels.first,
        stood,
        alarms(fleet, simulate(fleet)),
    )
