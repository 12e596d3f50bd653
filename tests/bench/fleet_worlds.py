"""Layouts, adverse conditions and faults of simulated fleets. Conditions are no faults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from tests.bench.fleet_model import Fleet

DAY = 1440
SIDE = Fleet(history=DAY, replaces=True, stagger=2)
IN_TURN = Fleet(gpus=("H100",), history=DAY, sequential=True, baseline_per_gpu=4)


def next_to(candidates: int, baseline: int) -> Fleet:
    """A layout side by side on one GPU type."""
    return replace(SIDE, gpus=("H100",), baseline_per_gpu=baseline, candidates=candidates)


LAYOUTS = {
    "1 v 1": next_to(1, 1),
    "2 v 2": next_to(2, 2),
    "4 v 4": next_to(4, 4),
    "2 v 3+3": replace(SIDE, candidates=2),
    "1 v 20": next_to(1, 20),
    "host by host": IN_TURN,
    "blue/green": replace(IN_TURN, stagger=0),
    "job after job": replace(
        IN_TURN,
        baseline_per_gpu=2,
        stagger=0,
        gap=30,
        calls_per_minute=60.0,
        traffic_swing=0.0,
        mix_swing=0.0,
        day_swing=0.0,
    ),
}
"""In layouts side by side, each canary takes the place of a further baseline instance."""
SIDE_BY_SIDE = ("1 v 1", "2 v 2", "2 v 3+3", "1 v 20")
ONE_AFTER_THE_OTHER = ("host by host", "blue/green")
ALL = (*SIDE_BY_SIDE, *ONE_AFTER_THE_OTHER)
Changes = dict[str, Any]


class World(NamedTuple):
    """A condition as changes to a `Fleet`, and the layouts in which it can occur."""

    changes: Changes
    layouts: tuple[str, ...] = ALL


TWO_TYPES = ("2 v 3+3",)
ALL_OF_IT: Changes = {
    "sticky": 0.03,
    "rack_bursts_per_day": 3.0,
    "throttles_per_day": 0.1,
    "restarts_per_day": 1.0,
    "settle": 0.15,
    "storms_per_day": 2.0,
    "pauses_per_hour": 1.0,
    "clock_skew": 1,
    "missing": 0.02,
    "drift_sd": 0.02,
    "weekend": 0.05,
}
WORLDS: dict[str, World] = {
    "usual noise": World({}),
    "sticky users, another mix of lengths": World({"sticky": 0.05, "candidate_mix": 0.2}),
    "single hosts throttled": World({"throttles_per_day": 0.5}),
    "power caps by GPU type": World({"power_caps_per_day": 1.5}),
    "bursts of racks": World({"rack_bursts_per_day": 8.0, "rack_sd": 0.02}),
    "bursts of neighbours": World({"bursts_per_day": 20.0}),
    "restarts, nodes known": World({"restarts_per_day": 4.0}),
    "restarts, nodes unknown": World({"restarts_per_day": 4.0, "nodes_known": False}),
    "autoscaling, nodes known": World({"autoscale": True}),
    "autoscaling, nodes unknown": World({"autoscale": True, "nodes_known": False}),
    "1% of the traffic": World({"traffic_share": 0.01}, SIDE_BY_SIDE),
    "5% of the traffic": World({"traffic_share": 0.05}, SIDE_BY_SIDE),
    "half of the traffic": World({"traffic_share": 0.5}, ("2 v 3+3", "1 v 20")),
    "ramp over 4 h, speed follows load": World({"ramp": 240, "load_slope": 0.02}, SIDE_BY_SIDE),
    "warm-up of an hour": World({"settle": 0.3}),
    "Pareto latencies": World({"latency": "pareto"}),
    "bimodal latencies": World({"latency": "bimodal"}),
    "clocks differ, minutes missing": World(
        {"clock_skew": 2, "missing": 0.05, "gaps_per_day": 4.0}
    ),
    "clock steps": World({"clock_steps_per_day": 3.0}),
    "deployment at peak": World({"phase": 700, "traffic_swing": 0.9, "day_swing": 0.15}),
    "redeployment after 90 min": World({"redeploy": 90, "settle": 0.15}),
    "shares of GPU types differ": World(
        {
            "gpus": ("H100", "H100", "A100"),
            "candidate_gpus": ("A100", "A100", "H100"),
            "candidates": 3,
            "baseline_per_gpu": 2,
        },
        TWO_TYPES,
    ),
    "candidate on a slower GPU type only": World({"candidate_gpus": ("L40S",)}, TWO_TYPES),
    "storms of errors and retries": World({"storms_per_day": 8.0}),
    "garbage collection": World({"pauses_per_hour": 6.0}),
    "5 calls a minute": World({"calls_per_minute": 5.0}),
    "weekends": World({"weekend": 0.08}),
    "days differ": World({"day_step": 0.05}),
    "nodes drift": World({"drift_sd": 0.04}),
    "running maximum, looked up by the tenth, lone eager calls": World(
        {"peak_climb": 0.02, "looked_up": 0.1, "lone_eager_per_day": 24.0, "calls_per_minute": 30.0}
    ),
    "two GPUs per node": World({"pairs": True, "throttles_per_day": 0.1}, ("1 v 1", "2 v 2")),
    "nodes unknown": World({"nodes_known": False}),
    "6 h of history": World({"history": 360}),
    "all of it": World(ALL_OF_IT),
}
JOBS: dict[str, Changes] = {
    "training jobs": {},
    "training jobs, days differ": {"day_step": 0.03},
    "training jobs, nodes throttled": {"throttles_per_day": 0.3},
}
FAULTS: dict[str, Changes] = {
    "p50 +5%": {"fault": "slow", "size": 0.05},
    "p50 +10%": {"fault": "slow", "size": 0.10},
    "p50 +20%": {"fault": "slow", "size": 0.20},
    "p50 +50%": {"fault": "slow", "size": 0.50},
    "5 times slower": {"fault": "slow", "size": 4.0},
    "p50 +20% after 3 h": {"fault": "slow", "size": 0.20, "onset": 180},
    "p50 +20% in one of two buckets": {"fault": "slow", "size": 0.20, "fault_bucket": "large"},
    "p50 +20% on one GPU type": {"fault": "slow", "size": 0.20, "fault_gpu": "A100"},
    "p50 +50% on half of the instances": {"fault": "slow", "size": 0.50, "affected": 0.5},
    "p99 alone +30%": {"fault": "tail", "size": 0.30},
    "errors .1 to 1%": {"fault": "error", "size": 10.0},
    "half of all calls fail": {"fault": "fail", "size": 0.5},
    "half of the calls eager": {"fault": "eager", "size": 0.5},
    "a fifth fewer items in the same time": {"fault": "batches", "size": 0.2},
    "GPU memory +20%": {"fault": "memory", "size": 0.20},
    "a leak of 2% an hour": {"fault": "leak", "size": 0.02},
    "twice the compile time": {"fault": "compile", "size": 2.0},
    "cache hits 95 to 40%": {"fault": "cache", "size": 0.40},
    "30 recompiles an hour": {"fault": "recompiles", "size": 30.0},
}
CONFOUNDERS: dict[str, Changes] = {
    "same": {},
    "mix shift": {"candidate_mix": 0.25},
    "slower GPU only": {"candidate_gpus": ("L40S",)},
    "GPU imbalance": {"candidate_gpus": ("A100",)},
    "bursts x4": {"bursts_per_day": 8.0},
    "low traffic": {"calls_per_minute": 15.0},
}
"""Conditions of tests, without a past."""
