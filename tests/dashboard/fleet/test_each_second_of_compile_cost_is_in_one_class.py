"""Compile cost: compilations, cache misses and eager calls in GPU-seconds, each second once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.fleet.metrics.compile_cost import (
    COMPILING,
    EAGER,
    MISSES,
    CallDay,
    CompileHours,
    MissSeconds,
    ModelCost,
    add_costs,
)

H200, DAY = "NVIDIA H200", 20_000
PLACE = ("forward", "2^12")


def calls(version: int, eager: int, seconds: float, *, on_purpose: bool = False) -> CallDay:
    """A thousand calls; the mode of all calls is known."""
    return CallDay(version, H200, PLACE, on_purpose, DAY, 1000, 1000, eager, seconds * 1000, 1000)


def cost_of(
    compiled: list[CompileHours], missed: list[MissSeconds], called: list[CallDay]
) -> ModelCost:
    """The cost of model 7, with version 1 on two GPUs and version 2 on one."""
    return add_costs(
        model_of={1: 7, 2: 7},
        gpus_of={(1, H200): 2, (2, H200): 1},
        compiled=compiled,
        missed=missed,
        calls=called,
    ).get(7, ModelCost())


def test_seconds_count_once_for_each_gpu_of_the_process() -> None:
    cost = cost_of(
        [CompileHours(1, H200, DAY, 30.0), CompileHours(2, H200, DAY, 10.0)],
        [MissSeconds(1, H200, DAY, 12.0)],
        [],
    )
    assert cost.by_class[COMPILING][DAY] == 2 * 18.0 + 10.0
    assert cost.by_class[MISSES][DAY] == 2 * 12.0


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_misses_and_compilations_add_up_to_all_seconds(seconds: float, missed: float) -> None:
    cost = cost_of([CompileHours(2, H200, DAY, seconds)], [MissSeconds(2, H200, DAY, missed)], [])
    assert cost.total(DAY) == pytest.approx(seconds)
    assert all(value >= 0 for days in cost.by_class.values() for value in days.values())


def test_a_process_without_a_gpu_costs_no_gpu_seconds() -> None:
    cost = add_costs(
        model_of={1: 7},
        gpus_of={(1, ""): 0},
        compiled=[CompileHours(1, "", DAY, 30.0)],
        missed=[],
        calls=[],
    )
    assert 7 not in cost or cost[7].total(0) == 0.0


def test_eager_calls_cost_the_time_that_they_take_longer() -> None:
    cost = cost_of([], [], [calls(1, 250, 0.010), calls(2, 1000, 0.016, on_purpose=True)])
    assert cost.by_class[EAGER][DAY] == pytest.approx(2 * 250 * 0.006)
    assert cost.unknown_eager == 0


def test_eager_calls_without_an_eager_time_are_not_known_instead_of_zero() -> None:
    cost = cost_of([], [], [calls(1, 250, 0.010)])
    assert not cost.by_class[EAGER]
    assert cost.unknown_eager == 250


def test_eager_calls_that_are_faster_cost_nothing() -> None:
    cost = cost_of([], [], [calls(1, 250, 0.010), calls(2, 1000, 0.004, on_purpose=True)])
    assert cost.by_class[EAGER][DAY] == 0.0
