"""A packed sketch comes back equal and takes few bytes."""

from __future__ import annotations

import pytest
from compilewatch.wire.sketch import Sketch
from compilewatch.wire.varint import decode_varints
from hypothesis import given
from hypothesis import strategies as st

counts = st.lists(st.integers(0, 3) | st.integers(0, 2**63), max_size=80)


@given(st.lists(st.floats(0, 1e6), max_size=80))
def test_a_packed_sketch_comes_back_equal(values: list[float]) -> None:
    sketch = Sketch.of(values)
    assert Sketch.unpack(sketch.pack()) == sketch


@given(counts, st.integers(-1024, 900), st.integers(0, 2**40))
def test_any_bins_come_back_equal(bins: list[int], offset: int, zero: int) -> None:
    sketch = Sketch(
        count=zero + sum(bins), sum=1.5, min=0.0, max=9.0, zero=zero, offset=offset, bins=bins
    )
    assert Sketch.unpack(sketch.pack()) == sketch


def test_a_window_of_calls_takes_less_than_two_hundred_bytes() -> None:
    sketch = Sketch.of(0.010 * (1 + i % 97 / 100) for i in range(1000))
    assert len(sketch.pack()) < 200


def test_truncated_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="incomplete"):
        list(decode_varints(b"\x01\x80"))
