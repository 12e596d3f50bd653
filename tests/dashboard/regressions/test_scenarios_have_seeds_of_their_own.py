"""Every deployment of a calibration has its own seed, and no seed for tuning is a seed of the
test."""

from __future__ import annotations

from dataclasses import fields

from tests.bench.fleet_model import Fleet
from tests.bench.fleet_scenarios import FIRST_SEEDS, GROUPS, SEEDS_A_SCENARIO, scenarios

FOUND = scenarios()


def test_no_seed_occurs_twice() -> None:
    seeds = [
        fleet.seed
        for name in FIRST_SEEDS
        for scenario in FOUND
        for fleet in scenario.fleets(SEEDS_A_SCENARIO, 720, name)
    ]
    assert len(seeds) == len(set(seeds)) == 2 * SEEDS_A_SCENARIO * len(FOUND)


def test_a_seed_gives_the_same_fleet_for_any_number_of_deployments() -> None:
    for scenario in FOUND[::10]:
        assert scenario.fleets(3, 720, "test")[:2] == scenario.fleets(2, 720, "test")


def test_each_scenario_has_one_name_in_its_layout_and_group() -> None:
    keys = [(scenario.group, scenario.name, scenario.layout) for scenario in FOUND]
    assert len(keys) == len(set(keys))
    assert list(dict.fromkeys(group for group, _, _ in keys)) == list(GROUPS)


def test_healthy_scenarios_have_no_fault_and_faulty_ones_have_one() -> None:
    assert all(scenario.healthy for scenario in FOUND if scenario.group == "healthy")
    assert not any(scenario.healthy for scenario in FOUND if scenario.group == "faulty")


def test_each_parameter_of_a_fleet_occurs_in_a_scenario() -> None:
    noise = {
        "seed",
        "minutes",
        "fleet_sd",
        "host_sd",
        "process_sd",
        "minute_sd",
        "minute_memory",
        "call_sd",
        "tail_chance",
        "warm_up",
        "eager_instance_chance",
        "error_share",
        "error_sd",
        "error_bursts_per_day",
        "items_per_call",
        "settle_minutes",
    }
    used = {
        field.name
        for field in fields(Fleet)
        if any(getattr(scenario.fleet, field.name) != field.default for scenario in FOUND)
    }
    assert {field.name for field in fields(Fleet)} - used - noise == set()
