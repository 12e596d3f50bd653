"""Other models on the same nodes show what slows a node: the judged level is corrected by it as far
as both moved together before the deployment, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import exp

import numpy as np
import pytest

from dashboard.regressions.judge import Comparison, InstanceMinute, evaluate_comparison
from dashboard.regressions.judge.neighbours import NeighbourMinute, Neighbours, fit_neighbours
from dashboard.regressions.judge.result import Outcome
from dashboard.regressions.judge.settings import P50, PRODUCTION, THROUGHPUT
from tests.bench.fleet_scenarios import scenarios
from tests.bench.judge_trials import watch
from tests.dashboard.regressions.fleets import instance

HISTORY, MINUTES, NODES = 600, 120, 6
Slow = Callable[[int, int], float]
"""The slow-down of a node in a minute, on the log scale."""
NOISE = np.random.default_rng(7).normal(0, 0.01, (2, NODES, HISTORY + MINUTES))


def throttled(node: int, minute: int) -> float:
    """Node 0 is slow for two hours before the deployment, and the candidates' nodes 4 and 5 since
    it."""
    before = node == 0 and -400 <= minute < -280
    return 0.3 * (before or (node >= 4 and minute >= 0))


def still(node: int, minute: int) -> float:
    return 0.0


def own(slow: Slow, slower: float = 1.0) -> Iterator[list[InstanceMinute]]:
    """Four baseline instances, and two candidates in the place of two others."""
    for minute in range(-HISTORY, MINUTES):
        rows = []
        for node in range(NODES):
            new = node >= 4 and minute >= 0
            level = slow(node, minute) + NOISE[0, node, minute]
            row = instance(f"{'c' if new else 'b'}{node}", host=f"n{node}", minute=minute)
            first = 0 if new else -HISTORY - 10
            p50 = 0.010 * exp(level) * (slower if new else 1.0)
            rows.append(replace(row, first_minute=first, p50=p50))
        yield rows


def others(slow: Slow, nodes: int = NODES) -> Iterator[list[NeighbourMinute]]:
    """One process of another model on each node."""
    for minute in range(-HISTORY, MINUTES):
        yield [
            NeighbourMinute(
                minute,
                f"n{node}",
                node,
                50,
                0.020 * exp(slow(node, minute) + NOISE[1, node, minute]),
            )
            for node in range(nodes)
        ]


def fit(slow: Slow, seen: Slow, nodes: int = NODES) -> Neighbours:
    minutes = zip(range(-HISTORY, 0), own(slow), others(seen, nodes), strict=False)
    return fit_neighbours(minutes, PRODUCTION)


def judged(slow: Slow, seen: Slow, slower: float = 1.0) -> Outcome:
    neighbours = fit(slow, seen)
    comparison = Comparison(0, neighbours.control(PRODUCTION))
    minutes = zip(range(-HISTORY, MINUTES), own(slow, slower), others(seen), strict=True)
    for minute, rows, around in minutes:
        neighbours.step(around)
        comparison.add_minute(minute, rows)
    return evaluate_comparison(comparison, now_minute=MINUTES)


def change(outcome: Outcome) -> float:
    row = next(row for row in outcome.evidence if row.metric == "p50")
    assert row.change is not None
    return row.change


def test_the_slope_is_that_of_the_common_disturbance() -> None:
    assert 0.7 < fit(throttled, throttled).slopes["p50"] <= 1.0


@pytest.mark.parametrize(("slow", "seen"), [(still, still), (still, throttled), (throttled, still)])
def test_neighbours_that_do_not_move_with_the_model_explain_nothing(slow: Slow, seen: Slow) -> None:
    neighbours = fit(slow, seen)
    assert neighbours.slopes == {}
    assert neighbours.control(PRODUCTION) == PRODUCTION


def test_neighbours_on_two_nodes_are_no_control() -> None:
    assert fit(throttled, throttled, nodes=2).slopes == {}


def test_a_throttled_node_is_no_regression_and_the_control_is_named() -> None:
    assert change(judged(throttled, still)) > 0.2
    outcome = judged(throttled, throttled)
    assert abs(change(outcome)) < 0.1
    assert outcome.verdict not in ("watch", "roll_back")
    assert outcome.layouts == ("side_by_side", "less_neighbours")


def test_a_slower_version_on_throttled_nodes_is_found() -> None:
    outcome = judged(throttled, throttled, slower=1.3)
    assert change(outcome) == pytest.approx(0.3, abs=0.1)
    assert outcome.verdict == "roll_back"


def test_what_most_neighbours_have_in_common_is_their_own() -> None:
    def busy(node: int, minute: int) -> float:
        return throttled(node, minute) * (minute < 0) + 0.5 * (minute >= 0)

    neighbours = fit(throttled, busy)
    assert neighbours.slopes
    for around in others(busy):
        neighbours.step(around)
    assert max(abs(level) for level in neighbours.levels.values()) < 0.1


def test_a_higher_level_is_worse_for_durations_and_better_for_throughput() -> None:
    neighbours = fit(throttled, throttled)
    neighbours.slopes["throughput"] = neighbours.slopes["p50"]
    neighbours.levels = {"n0": 0.2}
    by_name = {metric.name: metric for metric in neighbours.control(PRODUCTION).metrics}
    row = instance("b0", host="n0", items=100.0, latency_sum=1.0)
    for metric, faster in ((P50, -1), (THROUGHPUT, 1)):
        corrected = by_name[metric.name]
        assert hasattr(corrected, "value")
        expected = metric.value(row)
        assert expected is not None
        assert corrected.value(row) == pytest.approx(
            expected * exp(faster * 0.2 * neighbours.slopes["p50"])
        )


def test_a_simulated_fleet_with_throttled_hosts_is_judged_with_its_neighbours() -> None:
    name = "another model on the nodes, hosts throttled, +20%, host by host"
    (scenario,) = [one for one in scenarios() if one.name == name]
    found = [watch(fleet, PRODUCTION) for fleet in scenario.fleets(4, 480, "tuning")]
    assert sum("roll_back" in {kind for _, kind in one["transitions"]} for one in found) >= 3
