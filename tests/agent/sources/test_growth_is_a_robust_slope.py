"""Bytes per hour: the growth of a steady leak, robust against single odd minutes, and no value for
too few points."""

from __future__ import annotations

import random

from compilewatch.sources.host.theil_sen import MAX_POINTS, MIN_POINTS, Slope
from hypothesis import given, settings
from hypothesis import strategies as st

GIB = float(1 << 30)


def after(minutes: int, value_at: object) -> Slope:
    """A slope that received one value each second for `minutes` minutes."""
    slope = Slope()
    for second in range(minutes * 60 + 1):
        slope.add(float(second), value_at(second / 3600))  # type: ignore[operator]
    return slope


def test_a_few_minutes_give_no_slope() -> None:
    assert after(MIN_POINTS - 1, lambda hour: GIB * hour).per_hour is None


def test_a_steady_leak_is_its_bytes_per_hour() -> None:
    slope = after(MIN_POINTS, lambda hour: 9 * GIB + 0.5 * GIB * hour).per_hour
    assert slope is not None and abs(slope - 0.5 * GIB) < 1e6


def test_constant_memory_has_no_slope() -> None:
    assert after(30, lambda _: 9 * GIB).per_hour == 0.0


@settings(max_examples=20, deadline=None)
@given(leak=st.floats(-2.0, 2.0), seed=st.integers(0, 2**16))
def test_noise_and_a_fifth_of_wild_minutes_do_not_change_the_slope(leak: float, seed: int) -> None:
    chance = random.Random(seed)
    wild = {minute for minute in range(60) if chance.random() < 0.2}

    def value(hour: float) -> float:
        spike = 20 * GIB if int(hour * 60) in wild else 0.0
        return 9 * GIB + leak * GIB * hour + chance.gauss(0, 0.002) * GIB + spike

    slope = after(60, value).per_hour
    assert slope is not None and abs(slope / GIB - leak) < 0.25


def test_the_slope_covers_the_last_hour() -> None:
    slope = after(MAX_POINTS + 90, lambda hour: min(hour, 1.0) * GIB).per_hour
    assert slope == 0.0
