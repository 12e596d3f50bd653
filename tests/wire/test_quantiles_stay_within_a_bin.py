"""A quantile of a sketch differs from the true one by at most half a bin: 1.1%."""

from __future__ import annotations

from compilewatch.wire.sketch import Sketch
from hypothesis import given
from hypothesis import strategies as st

BIN = 2.0 ** (1 / 32)


@given(st.lists(st.floats(1e-6, 1e4), min_size=1, max_size=200), st.floats(0.0, 1.0))
def test_a_quantile_lies_in_the_bin_of_the_true_one(values: list[float], q: float) -> None:
    found = Sketch.of(values).quantile(q)
    ordered = sorted(values)
    rank = q * len(ordered)
    low = ordered[max(0, min(len(ordered) - 1, int(rank) - 1))]
    high = ordered[min(len(ordered) - 1, int(rank))]
    assert found is not None
    assert low / BIN <= found <= high * BIN


def test_the_median_of_one_value_is_the_value() -> None:
    assert Sketch.of([0.25]).quantile(0.5) == 0.25


def test_an_empty_sketch_has_no_quantile() -> None:
    assert Sketch().quantile(0.5) is None


def test_the_lowest_value_lies_in_the_first_filled_bin_behind_empty_ones() -> None:
    values = Sketch.of([0.010, 0.020, 0.040])
    padded = values.copy()
    padded.bins, padded.offset = [0, 0, *values.bins, 0], values.offset - 2
    assert [padded.quantile(q) for q in (0.0, 0.3, 0.5, 1.0)] == [
        values.quantile(q) for q in (0.0, 0.3, 0.5, 1.0)
    ]
    assert padded.quantile(0.0) == values.min
