"""Sketches as columns equal the wire's own sketches, bin by bin, in any grouping."""

from __future__ import annotations

import pytest
from compilewatch.wire.sketch import MAX_INDEX, MIN_INDEX, Sketch
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.fleet.fold import sketch_columns as columns_of_sketches
from dashboard.fleet.fold.sketch_columns import (
    SketchColumns,
    build_sketch_columns,
    concatenate_sketches,
    merge_packed_by_key,
    unpack_sketches,
)

values = st.one_of(
    st.floats(0, 1e12), st.integers(0, 64_000).map(lambda n: n / 64), st.just(0.0), st.just(1e-30)
)
plain = st.lists(values, max_size=12).map(Sketch.of)


@st.composite
def gappy(draw: st.DrawFn) -> Sketch:
    """A sketch with long runs of empty bins, large counts, and empty bins at its ends."""
    bins = draw(st.lists(st.sampled_from([0, 0, 0, 1, 5, 200, 1 << 40]), max_size=40))
    offset = draw(st.integers(MIN_INDEX, MAX_INDEX - 40))
    zero = draw(st.sampled_from([0, 0, 3]))
    count = zero + sum(bins)
    return Sketch(
        count=count,
        sum=1.5 * count,
        min=0.0 if zero or draw(st.booleans()) else 0.25,
        max=4.0,
        zero=zero,
        offset=offset if bins else 0,
        bins=bins,
    )


sketches = st.lists(plain | gappy(), max_size=12)
QUANTILES = (0.0, 0.01, 0.5, 0.95, 0.99, 1.0)


def sketch_values(sketch: Sketch) -> tuple[object, ...]:
    """All values of a sketch, without empty bins at its ends."""
    return sketch.count, sketch.sum, sketch.min, sketch.max, sketch.zero, dict(sketch.items())


def one_by_one(found: list[Sketch], groups: list[int], size: int) -> list[Sketch]:
    """The same merge with the wire's own sketches."""
    whole = [Sketch() for _ in range(size)]
    for sketch, group in zip(found, groups, strict=True):
        whole[group].merge(sketch)
    return whole


@settings(max_examples=300)
@given(found=sketches, data=st.data())
def test_merged_by_group(found: list[Sketch], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 4))
    groups = data.draw(st.lists(st.integers(0, size - 1), min_size=len(found), max_size=len(found)))
    expected = one_by_one(found, groups, size)
    half = len(found) // 2
    both_ways = concatenate_sketches(
        build_sketch_columns(found[:half]),
        unpack_sketches([sketch.pack() for sketch in found[half:]]),
    )
    for columns in (
        build_sketch_columns(found),
        unpack_sketches([sketch.pack() for sketch in found]),
        both_ways,
    ):
        merged = columns.merged(groups, size)
        assert [sketch_values(sketch) for sketch in merged.sketches()] == [
            sketch_values(sketch) for sketch in expected
        ]
        again = unpack_sketches(merged.packed()).merged(range(size), size)
        assert [sketch_values(sketch) for sketch in again.sketches()] == [
            sketch_values(sketch) for sketch in expected
        ]
        for q in QUANTILES:
            for mine, theirs in zip(
                merged.quantile(q), (sketch.quantile(q) for sketch in expected), strict=True
            ):
                assert (
                    mine == theirs
                    if theirs is None or mine is None
                    else mine == pytest.approx(theirs, rel=1e-14)
                ), q
            assert merged.upper_bounds(q) == [sketch.upper_bound(q) for sketch in expected], q


@given(found=sketches, data=st.data(), chunk=st.integers(1, 5))
def test_merged_by_key_in_parts_of_any_size(
    found: list[Sketch], data: st.DataObject, chunk: int
) -> None:
    keys = data.draw(st.lists(st.sampled_from("abc"), min_size=len(found), max_size=len(found)))
    expected: dict[str, Sketch] = {}
    for key, sketch in zip(keys, found, strict=True):
        expected.setdefault(key, Sketch()).merge(sketch)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(columns_of_sketches, "CHUNK", chunk)
        merged = merge_packed_by_key(
            [
                *((key, sketch.pack()) for key, sketch in zip(keys, found, strict=True)),
                ("absent", None),
            ]
        )
    assert list(merged) == list(expected)
    for key, sketch in expected.items():
        whole = merged[key]
        assert (whole.count, whole.min, whole.max, whole.zero, dict(whole.items())) == (
            sketch.count, sketch.min, sketch.max, sketch.zero, dict(sketch.items()),
        )  # fmt: skip
        assert whole.sum == pytest.approx(sketch.sum, rel=1e-12), (
            "floats of other groups are added in another order"
        )


@given(found=sketches)
def test_sketches_are_packed_as_on_the_wire(found: list[Sketch]) -> None:
    tight = [Sketch.of(()) for _ in found]
    for whole, sketch in zip(tight, found, strict=True):
        filled = dict(sketch.items())
        whole.merge(sketch)
        whole.offset = min(filled, default=0)
        whole.bins = [
            filled.get(index, 0)
            for index in range(whole.offset, max(filled, default=whole.offset - 1) + 1)
        ]
    assert build_sketch_columns(found).merged(range(len(found)), len(found)).packed() == [
        sketch.pack() for sketch in tight
    ]


def test_merging_nothing_gives_nothing() -> None:
    assert (
        len(build_sketch_columns([]))
        == len(unpack_sketches([]))
        == len(concatenate_sketches(build_sketch_columns([]), unpack_sketches([])))
        == 0
    )
    empty: SketchColumns = build_sketch_columns([]).merged([], 2)
    assert empty.quantile(0.5) == [None, None]
    assert empty.sketches() == [Sketch(), Sketch()]
    assert build_sketch_columns([]).packed() == []


def test_a_truncated_sketch_or_another_scale_is_refused() -> None:
    whole = Sketch.of([1.0, 2.0]).pack()
    with pytest.raises(ValueError, match="truncated"):
        unpack_sketches([whole, whole[:26]])
    with pytest.raises(ValueError, match="scale"):
        unpack_sketches([Sketch(scale=4).pack()])
