"""Confidence bands: wide for few calls, absent for exact values, and always around the value."""

import random

import pytest
from compilewatch.wire.sketch import Sketch
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.fleet.fold.sketch_columns import build_sketch_columns
from dashboard.ui.charts.confidence_bands import Interval, quantile_intervals, share_interval
from dashboard.ui.charts.lttb import decimate


def drawn(count: int, seed: int = 7) -> Sketch:
    noise = random.Random(seed)
    return Sketch.of(0.02 * noise.lognormvariate(0, 0.4) for _ in range(count))


def quantile_interval(sketch: Sketch, q: float) -> Interval | None:
    """The interval of the quantile from one sketch."""
    return quantile_intervals(build_sketch_columns([Sketch(), sketch, Sketch.of([7.0])]), q)[1]


def test_few_calls_have_a_wide_band_and_many_calls_have_none() -> None:
    few, some = quantile_interval(drawn(30), 0.99), quantile_interval(drawn(2000), 0.99)
    assert few is not None and some is not None
    assert few[1] / few[0] > some[1] / some[0] > 1
    assert quantile_interval(drawn(60_000), 0.5) is None


def test_the_band_almost_always_contains_the_true_quantile() -> None:
    true = 0.02
    spans = [quantile_interval(drawn(200, seed), 0.5) for seed in range(200)]
    covered = sum(span is not None and span[0] * 0.989 <= true <= span[1] * 1.011 for span in spans)
    assert covered >= 184


def test_no_data_has_no_band() -> None:
    assert quantile_interval(Sketch(), 0.5) is None
    assert share_interval(0, 0) is None


def test_a_share_of_zero_or_one_has_no_band() -> None:
    assert share_interval(0, 500) is None
    assert share_interval(500, 500) is None


@settings(max_examples=50)
@given(st.integers(1, 10_000), st.data())
def test_a_share_lies_within_its_band(of: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, of))
    span = share_interval(hits, of)
    assert span is None or 0 <= span[0] <= hits / of <= span[1] <= 1


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(1, 20, 0.0089, 0.2361), (10, 20, 0.299, 0.701), (19, 20, 0.7639, 0.9911)],
)
def test_shares_have_the_wilson_interval(hits: int, of: int, low: float, high: float) -> None:
    assert share_interval(hits, of) == pytest.approx((low, high), abs=1e-3)


POINTS = st.lists(st.floats(-1e9, 1e9), max_size=400).map(
    lambda values: [(float(x), y) for x, y in enumerate(values)]
)


@settings(max_examples=50)
@given(POINTS, st.integers(2, 60))
def test_decimation_keeps_a_subset_in_order_with_both_end_points(
    points: list[tuple[float, float]], most: int
) -> None:
    kept = decimate(points, most)
    assert kept == sorted(set(kept))
    assert len(kept) == min(len(points), most)
    assert not points or (kept[0], kept[-1]) == (0, len(points) - 1)


@settings(max_examples=50)
@given(st.integers(100, 600), st.data())
def test_decimation_keeps_a_single_peak(count: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, count - 1))
    points = [(float(x), 100.0 if x == at else 1.0) for x in range(count)]
    assert at in decimate(points, 40)


def test_decimation_keeps_a_peak_next_to_the_end() -> None:
    for count in range(41, 1000):
        at = count - 2
        points = [(float(x), 100.0 if x == at else 1.0) for x in range(count)]
        assert at in decimate(points, 40)
