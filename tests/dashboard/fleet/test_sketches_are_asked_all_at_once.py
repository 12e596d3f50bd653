"""A sketch in a group gives the same answer as alone, and each query is computed once for the whole
group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from compilewatch.wire.sketch import Sketch
from hypothesis import given
from hypothesis import strategies as st

from dashboard.fleet.fold.cached_quantiles import (
    EMPTY_SKETCH,
    merge_cached_sketches,
    merge_packed_groups,
)
from dashboard.fleet.fold.sketch_columns import SketchColumns, build_sketch_columns

sketches = st.lists(st.lists(st.floats(0, 1e12), max_size=12).map(Sketch.of), max_size=8)
QUANTILES = (0.0, 0.01, 0.5, 0.95, 0.99, 1.0)


def same(found: float | None, expected: float | None) -> bool:
    return (
        found == expected
        if found is None or expected is None
        else found == pytest.approx(expected, rel=1e-14)
    )


@given(groups=st.lists(sketches, max_size=5))
def test_each_group_answers_as_one_sketch(groups: list[list[Sketch]]) -> None:
    expected = [Sketch() for _ in groups]
    for whole, found in zip(expected, groups, strict=True):
        for sketch in found:
            whole.merge(sketch)
    rows = merge_packed_groups([*(map(Sketch.pack, found) for found in groups), (None, b""), ()])
    assert len(rows) == len(groups) + 2
    for q in QUANTILES:
        assert all(
            same(row.quantile(q), sketch.quantile(q))
            for row, sketch in zip(rows, expected, strict=False)
        )
        assert rows[-1].quantile(q) is rows[-2].quantile(q) is None


@given(found=sketches, data=st.data())
def test_a_merge_of_selected_sketches_equals_a_merge_one_by_one(
    found: list[Sketch], data: st.DataObject
) -> None:
    rows = merge_packed_groups([sketch.pack()] for sketch in found)
    chosen = data.draw(
        st.permutations(range(len(found))).map(lambda places: places[: len(places) // 2 + 1])
    )
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(chosen), max_size=len(chosen)))
    expected = [Sketch() for _ in range(3)]
    for place, group in zip(chosen, groups, strict=True):
        expected[group].merge(found[place])
    merged = merge_cached_sketches([rows[place] for place in chosen], groups, 3)
    assert len(merged) == 3
    for q in QUANTILES:
        assert all(
            same(row.quantile(q), sketch.quantile(q))
            for row, sketch in zip(merged, expected, strict=True)
        )


@given(found=sketches, data=st.data())
def test_each_row_can_have_its_own_quantile(found: list[Sketch], data: st.DataObject) -> None:
    shares = data.draw(st.lists(st.floats(0, 1), min_size=len(found), max_size=len(found)))
    values = build_sketch_columns(found).quantile(np.array(shares))
    assert all(
        same(value, sketch.quantile(q))
        for value, sketch, q in zip(values, found, shares, strict=True)
    )


def test_a_query_is_computed_once_for_all_rows() -> None:
    asked: list[int] = []

    def counted(columns: SketchColumns) -> Sequence[int]:
        asked.append(len(columns))
        return [int(count) for count in columns.count]

    rows = merge_packed_groups([[Sketch.of([1.0, 2.0]).pack()], [Sketch.of([3.0]).pack()]])
    assert [row.answer(counted) for row in rows * 2] == [2, 1, 2, 1]
    assert asked == [2]


def test_an_empty_sketch_has_no_quantile() -> None:
    assert EMPTY_SKETCH.quantile(0.5) is None
    assert [row.quantile(0.5) for row in merge_cached_sketches([], [], 2)] == [None, None]
