"""Ticks: round numbers, few, and enclosing the values on a linear axis."""

from __future__ import annotations

import random

import pytest

from dashboard.ui.charts.axis_ticks import fit_ticks, log_ticks


def test_a_linear_axis_encloses_its_values() -> None:
    draw = random.Random(1)
    for _ in range(3000):
        low = draw.uniform(-1, 1) * 10 ** draw.uniform(-6, 9)
        high = low + abs(low) * 10 ** draw.uniform(-3, 2)
        ticks = fit_ticks(low, high)
        assert ticks[0] <= low + 1e-9 * abs(low) and ticks[-1] >= high - 1e-9 * abs(high)
        assert 2 <= len(ticks) <= 8


@pytest.mark.parametrize("value", [0.0, 5.0, -3.0])
def test_one_value_has_an_axis(value: float) -> None:
    ticks = fit_ticks(value, value)
    assert len(ticks) >= 2 and ticks[0] <= value <= ticks[-1]


def test_a_log_axis_has_at_most_five_ticks_inside() -> None:
    assert log_ticks(8, 60) == [10.0, 15.0, 20.0, 30.0, 50.0]
    assert log_ticks(0.5, 3000) == [1.0, 10.0, 100.0, 1000.0]
    assert log_ticks(0, 10) == [] and log_ticks(3, 3) == []
