"""A fault that no noise can make needs no long hold time, on a single canary as well."""

from __future__ import annotations

import pytest

from dashboard.regressions.judge import Comparison
from tests.bench.fleet_sim import Fleet, instance_minutes

CANARY = {"gpus": ("H100",), "baseline_per_gpu": 4, "candidates": 1}
WARM_UP = 5


def first(fleet: Fleet, verdict: str) -> int | None:
    """The minute of the first such verdict, counted from the deployment."""
    comparison = Comparison(0)
    for minute, rows in enumerate(instance_minutes(fleet)):
        comparison.add_minute(minute, rows)
    return next((minute for minute, kind in comparison.policy.transitions if kind == verdict), None)


@pytest.mark.parametrize("seed", range(2_910_000, 2_910_006))
def test_half_of_all_calls_failing_is_rolled_back_within_6_minutes_of_the_first_call(
    seed: int,
) -> None:
    fleet = Fleet(seed=seed, minutes=40, fault="error", size=500.0, **CANARY)
    minute = first(fleet, "roll_back")
    assert minute is not None and minute <= fleet.warm_up + 6


@pytest.mark.parametrize("seed", range(2_910_010, 2_910_016))
def test_five_times_slower_is_rolled_back_within_5_minutes_of_the_warm_up(seed: int) -> None:
    minute = first(Fleet(seed=seed, minutes=40, fault="slow", size=4.0, **CANARY), "roll_back")
    assert minute is not None and WARM_UP < minute <= WARM_UP + 8


@pytest.mark.parametrize("seed", range(2_910_020, 2_910_026))
def test_twice_as_slow_on_all_of_several_instances_is_rolled_back_soon(seed: int) -> None:
    fleet = Fleet(
        seed=seed, minutes=40, fault="slow", size=1.0, stagger=0, **{**CANARY, "candidates": 3}
    )
    minute = first(fleet, "roll_back")
    assert minute is not None and minute <= WARM_UP + 8


def test_half_as_slow_again_on_a_single_canary_waits_for_a_busy_neighbour() -> None:
    minute = first(Fleet(seed=2_910_030, minutes=90, fault="slow", size=0.5, **CANARY), "roll_back")
    assert minute is not None and minute >= WARM_UP + 40
