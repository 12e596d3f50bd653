"""Correlation of alarms: alarms form a group if they share a trait and open within a short time;
the input order does not matter."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.alerts.correlation import (
    Alarm,
    SharedTrait,
    Trait,
    cluster_alarms,
    find_shared_traits,
    format_group_title,
)

START = datetime(2026, 11, 22, 12, tzinfo=UTC)
GPU, OTHER_GPU = ("GPU", "H100"), ("GPU", "A100")
MOVED = ("changed", "driver 570 to 580")


def machine(name: str) -> Trait:
    return "machine", name


def alarm(number: int, minute: float, *traits: Trait, version: int = 0, model: int = 0) -> Alarm:
    """By default each alarm is about a version of its own model."""
    return Alarm(
        number,
        version or number,
        model or number,
        START + timedelta(minutes=minute),
        frozenset(traits),
    )


def numbers(alarms: list[Alarm], running: dict[Trait, int] | None = None) -> list[list[int]]:
    return [[one.id for one in members] for members in cluster_alarms(alarms, running or {})]


def test_versions_on_the_same_machines_within_ten_minutes_are_one_group() -> None:
    alarms = [alarm(1, 0, machine("a")), alarm(2, 9, machine("a")), alarm(3, 9, machine("b"))]
    assert numbers(alarms) == [[1, 2]]


def test_the_maximum_gap_is_ten_minutes() -> None:
    assert numbers([alarm(1, 0, machine("a")), alarm(2, 10, machine("a"))]) == [[1, 2]]
    assert numbers([alarm(1, 0, machine("a")), alarm(2, 10.1, machine("a"))]) == []


def test_alarms_that_are_only_close_in_time_are_not_grouped() -> None:
    assert numbers([alarm(1, 0), alarm(2, 0)]) == []
    assert numbers([alarm(1, 0, machine("a"), GPU), alarm(2, 0, machine("b"), OTHER_GPU)]) == []


def test_most_of_the_machines_must_be_the_same() -> None:
    wide = [machine(f"gpu-{number}") for number in range(10)]
    assert (
        numbers(
            [
                alarm(1, 0, *wide),
                alarm(2, 0, *wide[:2], *(machine(f"x{number}") for number in range(8))),
            ]
        )
        == []
    )
    assert numbers([alarm(1, 0, *wide), alarm(2, 0, *wide[:2])]) == [[1, 2]]


def test_a_gpu_type_counts_only_where_half_of_the_models_on_it_alarm() -> None:
    alarms = [alarm(1, 0, GPU), alarm(2, 1, GPU)]
    assert numbers(alarms, {GPU: 4}) == [[1, 2]]
    assert numbers(alarms, {GPU: 5}) == []
    assert numbers([*alarms, alarm(3, 2, GPU)], {GPU: 5}) == [[1, 2, 3]]
    same_model = [alarm(1, 0, GPU, model=7), alarm(2, 1, GPU, model=7)]
    assert numbers(same_model, {GPU: 3}) == []


def test_the_same_change_is_enough() -> None:
    assert numbers(
        [alarm(1, 0, MOVED, machine("a")), alarm(2, 3, MOVED, machine("b"))], {GPU: 99}
    ) == [[1, 2]]
    assert numbers([alarm(1, 0, MOVED), alarm(2, 3, ("changed", "driver 570 to 575"))]) == []


def test_deployments_of_one_version_alone_are_no_common_cause() -> None:
    alarms = [alarm(1, 0, machine("a"), GPU, version=7), alarm(2, 0, machine("a"), GPU, version=7)]
    assert numbers(alarms, {GPU: 1}) == []
    assert numbers([*alarms, alarm(3, 1, machine("a"))]) == [[1, 2, 3]]


def test_two_changes_at_once_are_two_groups_and_one_alarm_may_join_them() -> None:
    apart = [
        alarm(1, 0, machine("a")),
        alarm(2, 0, machine("b")),
        alarm(3, 1, machine("a")),
        alarm(4, 1, machine("b")),
    ]
    assert numbers(apart) == [[1, 3], [2, 4]]
    assert numbers([*apart, alarm(5, 2, machine("a"), machine("b"))]) == [[1, 2, 3, 4, 5]]


@pytest.mark.parametrize("seed", range(20))
def test_the_input_order_changes_nothing(seed: int) -> None:
    chance = random.Random(seed)
    traits = [*map(machine, "abcde"), GPU, OTHER_GPU, MOVED]
    given = [
        alarm(
            number,
            chance.uniform(0, 40),
            *chance.sample(traits, chance.randint(0, 3)),
            version=chance.randint(1, 12),
        )
        for number in range(1, 25)
    ]
    running = {GPU: 6, OTHER_GPU: 9}
    expected = numbers(given, running)
    for _ in range(5):
        chance.shuffle(given)
        assert numbers(given, running) == expected
    assert expected


def test_a_thousand_on_the_same_machines_are_one_group() -> None:
    machines = [machine(f"gpu-{number}") for number in range(100)]
    assert [
        len(members)
        for members in cluster_alarms(
            [alarm(number, 0, GPU, *machines) for number in range(1, 1001)], {GPU: 1000}
        )
    ] == [1000]


def test_the_title_names_the_most_shared_traits_and_the_number_of_alerts() -> None:
    alarms = [
        alarm(1, 0, machine("gpu-7"), GPU, MOVED),
        alarm(2, 0, machine("gpu-7"), GPU, MOVED),
        alarm(3, 0, machine("gpu-7"), OTHER_GPU),
    ]
    shared = find_shared_traits(alarms, {GPU: 2})
    assert shared == [
        SharedTrait("machine", "gpu-7", 3),
        SharedTrait("changed", MOVED[1], 2),
        SharedTrait("GPU", "H100", 2),
    ]
    assert (
        format_group_title(3, shared)
        == "Possible common cause: 3 alerts share machine gpu-7, driver 570 to 580 (2 of 3), GPU H100 "
        "(2 of 3)"
    )
    assert find_shared_traits(alarms, {GPU: 9})[-1].kind == "changed"
    many = [SharedTrait("machine", f"gpu-{number}", 2) for number in range(5)]
    assert (
        format_group_title(2, many)
        == "Possible common cause: 2 alerts share machine gpu-0, machine gpu-1, machine gpu-2, 2 more"
    )


def test_a_hostile_name_is_one_short_line() -> None:
    title = format_group_title(2, [SharedTrait("machine", "x\u202e\n<!channel>" + "y" * 500, 2)])
    assert "\n" not in title and "\u202e" not in title and len(title) < 130
