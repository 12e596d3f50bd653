"""Learned warm-up: the age at which young processes of past versions reach their own later level. Too
few or contradictory processes teach nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.regressions.judge.settings import PRODUCTION
from dashboard.regressions.judge.settings_overrides import (
    OverrideError,
    build_settings,
    check_overrides,
)
from dashboard.regressions.judge.warm_up import (
    LEAST_PROCESSES,
    LEAST_VERSIONS,
    MAX_WARM_UP_MINUTES,
    WINDOWS,
    LearnedWarmUp,
    WarmUpSums,
    pool_warm_up,
)
from tests.bench.fleet_sim import Fleet
from tests.dashboard.regressions.young_fleets import SETTLED_MINUTES, Youth, learn

PAIR = Fleet(minutes=210, history=90, candidates=4, stagger=5)
SEEDS = range(770_000, 770_008)


def lesson(excess: float, until: int, count: int = 4, sd: float = 0.02) -> WarmUpSums:
    """A version whose processes are slower by `excess` until an age, each by a little more or less."""
    return {
        str(age): [
            count,
            count * (excess if age < until else 0.0),
            count * ((excess if age < until else 0.0) ** 2 + sd * sd),
        ]
        for age in WINDOWS
    }


def test_the_decay_of_a_simulated_fleet_is_learned() -> None:
    learned = pool_warm_up([learn(replace(PAIR, seed=seed), Youth()) for seed in SEEDS])
    assert learned == LearnedWarmUp(SETTLED_MINUTES, 4 * len(SEEDS), len(SEEDS))


def test_a_fleet_without_slow_starts_keeps_the_default() -> None:
    learned = pool_warm_up([learn(replace(PAIR, seed=seed), Youth(slower=0.0)) for seed in SEEDS])
    assert learned is not None
    assert learned.minutes == PRODUCTION.warm_up_minutes


def test_a_load_that_falls_after_each_deployment_is_not_a_warm_up() -> None:
    falling, seeds = replace(PAIR, day_swing=0.3, phase=900), range(770_000, 770_012)
    learned = pool_warm_up([learn(replace(falling, seed=s), Youth(slower=0.0)) for s in seeds])
    assert learned is not None
    assert learned.minutes == PRODUCTION.warm_up_minutes


def test_processes_without_older_ones_at_the_same_time_teach_nothing() -> None:
    assert learn(replace(PAIR, history=0), Youth()) == {}


def test_short_lives_teach_nothing() -> None:
    assert learn(replace(PAIR, minutes=80), Youth()) == {}


def test_a_level_that_never_settles_gives_the_longest_warm_up() -> None:
    learned = pool_warm_up([lesson(0.2, 600)] * LEAST_VERSIONS)
    assert learned is not None
    assert learned.minutes == MAX_WARM_UP_MINUTES


def test_versions_that_are_slow_in_their_first_hour_do_not_lengthen_the_warm_up_of_others() -> None:
    usual, slow = [lesson(0.2, 15)] * 5, [lesson(0.2, 60)] * 2
    learned = pool_warm_up([*usual, *slow])
    assert learned is not None
    assert learned.minutes == 15


@pytest.mark.parametrize(
    "lessons",
    [
        [lesson(0.2, 15, count=10)] * (LEAST_VERSIONS - 1),
        [lesson(0.2, 15, count=(LEAST_PROCESSES - 1) // LEAST_VERSIONS)] * LEAST_VERSIONS,
        [lesson(0.2, 15, sd=0.2)] * LEAST_VERSIONS,
        [],
    ],
    ids=["few versions", "few processes", "large spread", "nothing"],
)
def test_too_little_data_teaches_nothing(lessons: list[WarmUpSums]) -> None:
    assert pool_warm_up(lessons) is None


@pytest.mark.parametrize(
    ("chosen", "learned", "in_force"),
    [
        ({}, None, (5, "default", 0)),
        ({}, 30, (30, "learned", 34)),
        ({}, 5, (5, "learned", 34)),
        ({}, 90, (60, "learned", 34)),
        ({"warm_up_minutes": 12}, 30, (12, "set", 0)),
        ({"warm_up_minutes": 0}, 30, (0, "set", 0)),
        ({"warm_up_minutes": 90}, None, (90, "set", 0)),
    ],
)
def test_a_set_warm_up_has_priority_over_a_learned_one(
    chosen: dict[str, int], learned: int | None, in_force: tuple[int, str, int]
) -> None:
    warm_up = None if learned is None else LearnedWarmUp(learned, 34, 8)
    settings = build_settings(chosen, warm_up=warm_up)
    assert in_force == (
        settings.warm_up_minutes,
        settings.warm_up_source,
        settings.warm_up_processes,
    )


def test_more_processes_alone_do_not_change_the_settings() -> None:
    few, many = (build_settings({}, warm_up=LearnedWarmUp(20, count, 8)) for count in (30, 40))
    assert few == many
    assert few != build_settings({}, warm_up=LearnedWarmUp(25, 30, 8))


@pytest.mark.parametrize("minutes", [-1, 241, 2.5])
def test_a_warm_up_outside_its_bounds_is_rejected(minutes: float) -> None:
    with pytest.raises(
        OverrideError, match=r"Warm-up is .* min, expected a whole number .* 0 to 240"
    ):
        check_overrides({"warm_up_minutes": minutes})
