"""A candidate on a node that was always slower is not slower than its baseline: the node's level
before the deployment is a covariate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dashboard.regressions.judge import InstanceMinute, judge
from dashboard.regressions.judge.node_past import fit_slope
from dashboard.regressions.judge.pooled_estimate import Place, combine, group, place_group
from tests.dashboard.regressions.fleets import ROW

SLOW = 1.12
HISTORY, MINUTES = 600, 120


def fleet(*, past: bool = True, change: float = 1.0) -> Iterator[InstanceMinute]:
    """Four nodes; the last one is 12% slower. The candidate takes its place at minute 0."""
    rng = np.random.default_rng(7)
    speeds = {"n1": 0.99, "n2": 1.0, "n3": 1.01, "n4": SLOW}
    for minute in range(-HISTORY if past else 0, MINUTES):
        for node, speed in speeds.items():
            new = node == "n4" and minute >= 0
            yield replace(
                ROW,
                instance=f"{'c' if new else 'b'}-{node}",
                unit=f"{'c' if new else 'b'}-{node}",
                arm="candidate" if new else "baseline",
                host=node,
                minute=minute,
                first_minute=-10 if new else -HISTORY - 10,
                p50=0.010 * speed * (change if new else 1.0) * float(np.exp(rng.normal(0, 0.005))),
            )


def change_of(rows: Iterator[InstanceMinute]) -> tuple[float, float]:
    """The change of p50, and half the width of its interval, relative to it."""
    outcome = judge(rows, now_minute=MINUTES, deployed_minute=0)
    row = next(row for row in outcome.evidence if row.metric == "p50")
    assert row.change is not None and row.smallest_visible is not None
    return row.change, row.smallest_visible


def test_the_slower_node_looks_like_a_change_only_without_its_past() -> None:
    without, wide = change_of(fleet(past=False))
    with_past, narrow = change_of(fleet())
    assert without == pytest.approx(0.12, abs=0.02)
    assert abs(with_past) < 0.05
    assert narrow < 0.8 * wide


def test_a_change_of_the_version_remains() -> None:
    change, _ = change_of(fleet(change=1.2))
    assert change == pytest.approx(0.2, abs=0.06)


def test_the_slope_is_the_expected_one_without_data_and_the_fitted_one_with_much() -> None:
    rng = np.random.default_rng(3)
    x = {str(unit): value for unit, value in enumerate(rng.normal(0, 0.05, 200))}
    y = {unit: 0.4 * value + float(rng.normal(0, 0.005)) for unit, value in x.items()}
    assert fit_slope([], 0.7, 0.0016) == 0.7
    assert fit_slope([(y, x)], 0.7, 0.0016) == pytest.approx(0.4, abs=0.05)
    assert fit_slope([({"a": 0.1, "b": -0.1}, {"a": -0.1, "b": 0.1})], 0.7, 0.0016) == 0.0


def test_both_versions_on_one_node_are_a_pair() -> None:
    """The instances of a node share half of their variance, which their difference does not have:
    the change has half the variance of a change between two nodes."""
    base, cand = {"b": 0.0}, {"c": 0.1}
    pair = place_group("H100", base, cand, {u: Place("n1", 0.5, 0.5) for u in "bc"})
    apart = place_group(
        "H100", base, cand, {"b": Place("n1", 0.5, 0.5), "c": Place("n2", 0.5, 0.5)}
    )
    assert (pair.k, apart.k) == (pytest.approx(1.0), pytest.approx(2.0))
    assert combine([pair], 0.04**2, 15).error < combine([apart], 0.04**2, 15).error


def test_nodes_of_their_own_give_the_plain_estimate() -> None:
    base, cand = {"b1": 0.0, "b2": 0.02, "b3": -0.01}, {"c1": 0.1, "c2": 0.15}
    places = {unit: Place(unit, 0.45, 0.55) for unit in (*base, *cand)}
    plain, placed = group("A100", base, cand), place_group("A100", base, cand, places)
    assert placed.delta == pytest.approx(plain.delta)
    assert placed.k == pytest.approx(plain.k)
    assert placed.squares() == pytest.approx(plain.squares())
