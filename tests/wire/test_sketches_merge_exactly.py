"""A sketch does not depend on the order or grouping of its values; its bins are those of
OpenTelemetry."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from compilewatch.wire.sketch import (
    BINS_PER_OCTAVE,
    MAX_BINS,
    MAX_INDEX,
    MIN_INDEX,
    Sketch,
    index_of,
    lower_bound,
)
from hypothesis import given
from hypothesis import strategies as st

values = st.lists(
    st.floats(allow_nan=False, allow_infinity=False, width=64) | st.floats(1e-9, 1e3), max_size=60
)
pieces = st.lists(values, min_size=1, max_size=6)


def joined(*sketches: Sketch) -> Sketch:
    whole = Sketch()
    for sketch in sketches:
        whole.merge(sketch)
    return whole


def exact(sketch: Sketch) -> tuple[object, ...]:
    """Everything except the sum, which is a rounded float."""
    return sketch.count, sketch.zero, sketch.min, sketch.max, list(sketch.items())


@given(pieces)
def test_merging_parts_equals_the_sketch_of_all_values(parts: list[list[float]]) -> None:
    whole = Sketch.of(value for part in parts for value in part)
    merged = joined(*map(Sketch.of, parts))
    assert exact(merged) == exact(whole)
    assert math.isclose(merged.sum, whole.sum, rel_tol=1e-9)
    assert whole.problem() is None and merged.problem() is None


@given(values, values, values)
def test_merging_is_commutative_and_associative(
    a: list[float], b: list[float], c: list[float]
) -> None:
    x, y, z = map(Sketch.of, (a, b, c))
    assert exact(joined(x, y)) == exact(joined(y, x))
    assert exact(joined(joined(x, y), z)) == exact(joined(x, joined(y, z)))


@given(values)
def test_the_order_of_values_changes_nothing(some: list[float]) -> None:
    assert Sketch.of(some) == Sketch.of(reversed(some))


@pytest.mark.parametrize("power", range(-31, 33))
def test_a_power_of_two_closes_its_bin_from_above(power: int) -> None:
    value = math.ldexp(1.0, power)
    expected = power * BINS_PER_OCTAVE - 1
    assert index_of(value) == expected
    assert index_of(math.nextafter(value, math.inf)) == min(expected + 1, MAX_INDEX)
    assert Sketch.of([value]).offset == expected


@given(st.floats(2.0**-32, 2.0**32, exclude_min=True))
def test_the_index_is_that_of_opentelemetry(value: float) -> None:
    index = index_of(value)
    # value^32 compared with 2^index and 2^(index+1) in exact arithmetic, with room for one rounding
    # of the table's bounds.
    power = Fraction(value) ** BINS_PER_OCTAVE
    slack = Fraction(1, 10**13)
    assert Fraction(2) ** index * (1 - slack) < power <= Fraction(2) ** (index + 1) * (1 + slack)


def test_values_outside_the_range_join_the_outermost_bins() -> None:
    sketch = Sketch.of([5e-324, 1e-12, 1e12, 1e15])
    assert list(sketch.items()) == [(MIN_INDEX, 2), (MAX_INDEX, 2)]
    assert len(sketch.bins) == MAX_BINS
    assert sketch.problem() is None


def test_invalid_durations_are_excluded_or_counted_as_zero() -> None:
    sketch = Sketch.of([float("nan"), float("inf"), -float("inf"), 1e300, -1.0, 0.0, 2.0])
    assert (sketch.count, sketch.zero, sketch.min, sketch.max, sketch.sum) == (3, 2, 0.0, 2.0, 2.0)


def test_bounds_are_exact_at_powers_of_two() -> None:
    assert [lower_bound(power * BINS_PER_OCTAVE) for power in (-32, -1, 0, 5)] == [
        2.0**-32,
        0.5,
        1.0,
        32.0,
    ]


def test_sketches_of_two_scales_do_not_merge() -> None:
    with pytest.raises(ValueError, match="scale 4"):
        Sketch.of([1.0]).merge(Sketch(scale=4, count=1, bins=[1]))
