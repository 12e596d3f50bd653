"""A received sketch is checked before it is merged: each contradiction has its own message."""

from __future__ import annotations

import pytest
from compilewatch.wire.sketch import Sketch


def good() -> Sketch:
    return Sketch.of([0.0, 0.5, 1.0, 2.0])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scale": 4}, "scale is 4, expected 5"),
        ({"bins": [1] * 2049}, "bins has 2049 entries, expected at most 2048"),
        ({"offset": 1000}, "offset is 1000: bins must lie between -1024 and 1023"),
        ({"offset": -1025}, "offset is -1025: bins must lie between -1024 and 1023"),
        ({"offset": 10**9}, "offset is 1000000000: bins must lie between -1024 and 1023"),
        ({"count": 7}, "count is 7, but zero and bins hold 4"),
        ({"zero": -1}, "count, zero and bins must not be negative"),
        ({"sum": float("inf")}, "sum, min and max must be finite numbers"),
        ({"min": 3.0}, "min must be between 0 and max"),
        ({"min": -1.0}, "min must be between 0 and max"),
        ({"max": 64.0}, "max lies outside the last filled bin"),
        ({"max": 0.25}, "max lies outside the last filled bin"),
    ],
)
def test_a_contradiction_is_named(change: dict[str, object], sentence: str) -> None:
    sketch = good()
    for name, value in change.items():
        setattr(sketch, name, value)
    assert sketch.problem() == sentence


def test_a_minimum_outside_its_bin_is_named() -> None:
    sketch = Sketch.of([0.5, 1.0, 2.0])
    sketch.min = 0.1
    assert sketch.problem() == "min lies outside the first filled bin"


def test_a_good_sketch_and_an_empty_one_have_no_problem() -> None:
    assert good().problem() is None
    assert Sketch().problem() is None
