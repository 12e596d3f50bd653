"""Simulated roll-outs whose starts vary by 5 to 20 %: the forecast is near, and eight in ten lie in its range, however few were seen."""

from __future__ import annotations

import math
import random

import pytest

from dashboard.ui.pages.forecast import forecast

ROLL_OUTS = 150


@pytest.mark.parametrize("replicas", [8, 32])
@pytest.mark.parametrize(("spread", "near"), [(0.05, 0.97), (0.1, 0.85), (0.2, 0.6)])
@pytest.mark.parametrize("seen", [5, 30])
def test_it_is_within_a_fifth_and_its_range_is_honest(seen: int, spread: float, near: float, replicas: int) -> None:
    chance = random.Random(f"{seen} {spread} {replicas}")

    def starts(count: int) -> list[float]:
        return [40.0 * math.exp(chance.gauss(0.0, spread)) for _ in range(count)]

    within = inside = 0
    for _ in range(ROLL_OUTS):
        told, slowest = forecast("cold", starts(seen), replicas), max(starts(replicas))
        assert told.low is not None and told.middle is not None and told.high is not None
        within += abs(told.middle / slowest - 1.0) <= 0.2
        inside += told.low <= slowest <= told.high
    assert within >= near * ROLL_OUTS
    assert 0.68 * ROLL_OUTS <= inside <= 0.92 * ROLL_OUTS


def test_the_same_starts_are_told_the_same() -> None:
    assert forecast("cold", [40.0, 41.0, 44.0], 10_000) == forecast("cold", [40.0, 41.0, 44.0], 10_000)
