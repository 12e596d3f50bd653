"""The methods that a calibration compares the judge with: two sequential tests keep their nominal
rate on independent minutes, and every method finds a large change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.bench.calibrate_table import PEERS
from tests.bench.fleet_sim import simulate
from tests.bench.fleet_worlds import LAYOUTS
from tests.bench.judge_peers import (
    ALPHA,
    confidence_sequence,
    find_alarms,
    sequential_ratio,
    sum_changes,
)

SEQUENTIAL = pytest.mark.parametrize("method", [sequential_ratio, confidence_sequence])


@SEQUENTIAL
def test_a_sequential_test_is_wrong_at_most_at_its_nominal_rate(
    method: Callable[[np.ndarray], int | None],
) -> None:
    rng = np.random.default_rng(1)
    # A noise this large makes the required change of 5% no obstacle.
    wrong = sum(method(rng.normal(0, 0.5, 720)) is not None for _ in range(600))
    assert 0 < wrong <= 1.5 * ALPHA * 600


@SEQUENTIAL
def test_a_sequential_test_finds_a_change_and_waits_with_a_small_one(
    method: Callable[[np.ndarray], int | None],
) -> None:
    noise = np.random.default_rng(2).normal(0, 0.1, 720)
    noise[:5] = np.nan
    early, late = method(noise + 0.3), method(noise + 0.08)
    assert early is not None and late is not None and 20 <= early <= late
    assert method(noise + 0.03) is None
    assert method(noise - 0.3) is None


def test_unknown_minutes_count_for_nothing() -> None:
    values = np.array([np.nan, 1.0, np.nan, 3.0])
    assert sum_changes(values).count.tolist() == [1.0, 1.0, 1.0, 2.0]
    assert sum_changes(values).mean.tolist() == [0.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("layout", ["2 v 2", "host by host", "blue/green"])
def test_every_method_finds_a_large_change(layout: str) -> None:
    fleet = replace(LAYOUTS[layout], seed=940_001, minutes=240, fault="slow", size=0.6)
    found = find_alarms(fleet, simulate(fleet))
    assert set(found) == set(PEERS)
    assert all(minute is not None and minute < 120 for minute in found.values())


def test_a_method_compares_with_the_day_before_if_the_baseline_is_gone() -> None:
    fleet = replace(LAYOUTS["blue/green"], seed=940_002, minutes=1440, day_swing=0.4, mix_swing=0.0)
    found = find_alarms(fleet, simulate(fleet))
    assert found["msprt"] is None and found["sequence"] is None
    assert found["threshold"] is not None
