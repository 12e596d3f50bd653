"""The scenarios that calibrate the judge: healthy fleets under adverse conditions, faults, and
questions about one property each. Every scenario has its own seeds.

Constants and rules of the judge are chosen on the seeds `tuning` only. The seeds `test` measure
it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.bench.fleet_model import Fleet
from tests.bench.fleet_worlds import FAULTS, JOBS, LAYOUTS, WORLDS

FIRST_SEEDS = {"tuning": 1_000_000, "test": 7_000_000}
SEEDS_A_SCENARIO = 1_000
PHASE = 173
"""Minutes between the times of day of two consecutive deployments."""
FAULT_LAYOUTS = ("1 v 1", "2 v 2", "2 v 3+3", "1 v 20", "host by host")
GROUPS = ("healthy", "faulty", "question")
Changes = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """Fleets that differ only in their seeds and times of day."""

    group: str
    name: str
    layout: str
    fleet: Fleet
    number: int = 0

    @property
    def healthy(self) -> bool:
        """True without a fault: every WATCH and ROLL BACK is false. A faster version is healthy."""
        return self.fleet.fault == "none" or self.fleet.size < 0

    def fleets(self, count: int, minutes: int, seeds: str) -> list[Fleet]:
        """The fleets of all deployments. A fixed time of day stays."""
        first = FIRST_SEEDS[seeds] + SEEDS_A_SCENARIO * self.number
        return [
            replace(
                self.fleet,
                minutes=minutes,
                seed=first + i,
                phase=self.fleet.phase or PHASE * (i + self.number) % 1440,
            )
            for i in range(min(count, SEEDS_A_SCENARIO))
        ]


def scenarios() -> list[Scenario]:
    """Every scenario, in order. The order determines the seeds, so new ones go to the end of the
    last group."""
    found = [*healthy(), *faulty(), *questions()]
    return [replace(scenario, number=number) for number, scenario in enumerate(found)]


def healthy() -> Iterator[Scenario]:
    """Every adverse condition in every layout in which it can occur."""
    for name, world in WORLDS.items():
        for layout in world.layouts:
            changes = world.changes
            yield Scenario("healthy", name, layout, replace(LAYOUTS[layout], **changes))
    for name, changes in JOBS.items():
        yield Scenario(
            "healthy", name, "job after job", replace(LAYOUTS["job after job"], **changes)
        )


def faulty() -> Iterator[Scenario]:
    """Every fault in five layouts, on fleets with the usual noise only."""
    for name, changes in FAULTS.items():
        for layout in FAULT_LAYOUTS:
            fleet = LAYOUTS[layout]
            if "affected" in changes and fleet.candidates == 1 and not fleet.sequential:
                continue
            if changes.get("fault_gpu") and len(fleet.gpus) == 1:
                fleet = two_types(fleet)
            yield Scenario("faulty", name, layout, replace(fleet, **changes))


def two_types(fleet: Fleet) -> Fleet:
    """The same layout on two GPU types, with at least one instance of each arm on both."""
    half = max(1, fleet.baseline_per_gpu // 2)
    return replace(
        fleet, gpus=("H100", "A100"), baseline_per_gpu=half, candidates=max(2, fleet.candidates)
    )


def questions() -> Iterator[Scenario]:
    """Questions about one property each."""
    for name, (layout, changes) in QUESTIONS.items():
        yield Scenario("question", name, layout, replace(LAYOUTS[layout], **changes))


def slow(size: float, **more: object) -> Changes:
    """A slower version."""
    return {"fault": "slow", "size": size, **more}


EIGHT = {"gpus": ("H100",), "baseline_per_gpu": 8, "candidates": 8}
FOUR_STRATA = {"modes": ("default", "max-autotune"), "baseline_per_gpu": 4, "candidates": 4}
"""One candidate on each GPU type in each mode."""
ELSEWHERE = {"nodes_known": False, "other_nodes": True}
FORTNIGHTS: dict[str, Changes] = {
    ", healthy": {},
    ", +10%": slow(0.1),
    ", days differ, healthy": {"day_step": 0.05},
    ", weekends, healthy": {"weekend": 0.12},
    ", weekends, +10%": slow(0.1, weekend=0.12),
}
SHARED_NODES: dict[str, Changes] = {
    "healthy": {},
    "+20%": slow(0.2),
    "hosts throttled, healthy": {"throttles_per_day": 1.5},
    "hosts throttled, +20%": slow(0.2, throttles_per_day=1.5),
    "racks, healthy": {"rack_bursts_per_day": 8.0, "rack_sd": 0.02},
}
LONE_EAGER = {"calls_per_minute": 20.0, "lone_eager_per_day": 48.0, "looked_up": 0.1}
QUESTIONS: dict[str, tuple[str, Changes]] = {
    "lone eager calls, a tenth looked up": ("2 v 3+3", LONE_EAGER),
    "lone eager calls, one canary": ("1 v 1", LONE_EAGER),
    "climbing peak of a young process": ("2 v 3+3", {"peak_climb": 0.02}),
    "climbing peak, host by host": ("host by host", {"peak_climb": 0.02}),
    "+20% after 3 h, 2 v 3+3": ("2 v 3+3", slow(0.2, onset=180)),
    "+20% after 3 h, 4 v 4": ("4 v 4", slow(0.2, onset=180)),
    "+20% after 3 h, host by host": ("host by host", slow(0.2, onset=180)),
    "+20% in one of two buckets, 2 v 3+3": ("2 v 3+3", slow(0.2, fault_bucket="large")),
    "+20% in one of two buckets, 4 v 4": ("4 v 4", slow(0.2, fault_bucket="large")),
    "+20% in one of two buckets, host by host": (
        "host by host",
        slow(0.2, fault_bucket="large"),
    ),
    "+20% on one GPU type of two, 4 v 3+3": (
        "2 v 3+3",
        slow(0.2, fault_gpu="A100", candidates=4),
    ),
    "blue/green, new pod names, nodes known, +20%": ("blue/green", slow(0.2)),
    "blue/green, new pod names, nodes unknown, +20%": (
        "blue/green",
        slow(0.2, nodes_known=False),
    ),
    "blue/green, new pod names, nodes unknown, healthy": ("blue/green", {"nodes_known": False}),
    "5 times slower on one canary, 1 v 20": ("1 v 20", slow(4.0)),
    "5 times slower on one canary, 1 v 1": ("1 v 1", slow(4.0)),
    "half of all calls fail on one canary, 1 v 20": ("1 v 20", {"fault": "fail", "size": 0.5}),
    "half of all calls fail on one canary, 1 v 1": ("1 v 1", {"fault": "fail", "size": 0.5}),
    "20% faster, 2 v 3+3": ("2 v 3+3", slow(-0.2)),
    "20% faster, 4 v 4": ("4 v 4", slow(-0.2)),
    "20% faster, host by host": ("host by host", slow(-0.2)),
    "+50% on 1 of 8 instances": ("4 v 4", slow(0.5, affected=0.125, **EIGHT)),
    "+10% side by side, 2 v 3+3": ("2 v 3+3", slow(0.1)),
    "+10% side by side, 4 v 4": ("4 v 4", slow(0.1)),
    "+20% side by side, 2 v 3+3": ("2 v 3+3", slow(0.2)),
    "+20% side by side, 4 v 4": ("4 v 4", slow(0.2)),
    "healthy 1 v 1": ("1 v 1", {}),
    "healthy 2 v 2": ("2 v 2", {}),
    "healthy 1 v 20": ("1 v 20", {}),
    "two GPUs per node, +20%": ("2 v 2", slow(0.2, pairs=True)),
    "two GPUs per node, nodes unknown, +20%": ("2 v 2", slow(0.2, pairs=True, nodes_known=False)),
    "blue/green on other nodes, +20%": ("blue/green", slow(0.2, **ELSEWHERE)),
    "blue/green on other nodes, healthy": ("blue/green", ELSEWHERE),
    "blue/green on other nodes, restarts, healthy": (
        "blue/green",
        {**ELSEWHERE, "restarts_per_day": 4.0},
    ),
    "blue/green on other nodes, days differ, healthy": (
        "blue/green",
        {**ELSEWHERE, "day_step": 0.05},
    ),
    **{
        f"blue/green{where}, 16 days of hours{name}": (
            "blue/green",
            {"days": 16, **places, **changes},
        )
        for where, places in (("", {}), (" on other nodes", ELSEWHERE))
        for name, changes in FORTNIGHTS.items()
    },
    **{
        f"another model on the nodes, {name}, {layout}": (layout, {"neighbours": 0.8, **changes})
        for name, changes in SHARED_NODES.items()
        for layout in ("2 v 2", "host by host", "1 v 20")
    },
    "+20% in one mode of two, on two GPU types, 4 v 4+4": (
        "2 v 3+3",
        slow(0.2, fault_mode="max-autotune", **FOUR_STRATA),
    ),
    "+20% on one GPU type of two, in two modes, 4 v 4+4": (
        "2 v 3+3",
        slow(0.2, fault_gpu="A100", **FOUR_STRATA),
    ),
    "healthy, two GPU types in two modes, 4 v 4+4": ("2 v 3+3", FOUR_STRATA),
}
