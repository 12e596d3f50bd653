"""Instances on hosts without a past are compared with all hosts of the baseline together over the
last day: a slower version is found, equal versions stay equal, and other nodes, days and restarts
widen the interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import exp, log, sin, sqrt, tau

import pytest
from scipy.stats import t

from dashboard.regressions.judge import Evidence, InstanceMinute, Outcome, judge
from dashboard.regressions.judge.settings import P50
from tests.bench.fleet_scenarios import scenarios
from tests.bench.judge_trials import watch
from tests.dashboard.regressions.fleets import LEARNED, instance
from tests.dashboard.regressions.test_the_change_is_what_the_formula_gives_by_hand import (
    prior_by_hand,
    tail_by_hand,
)

DAY, MINUTES = 1440, 60
OLD = {"x": 0.010, "y": 0.012}
COMPARED = MINUTES - 9
"""The first ten minutes after the baseline's last minute are excluded."""


def blue_green(
    slower: float = 1.0,
    new: tuple[str, ...] = ("p", "q"),
    history: int = DAY,
    calls: Callable[[int], int] = lambda _: 100,
    swing: float = 0.05,
) -> Iterator[InstanceMinute]:
    """Old pods x and y until the deployment, then new pods, with the swing of a day."""
    middle = sqrt(OLD["x"] * OLD["y"])
    for minute in range(-history, MINUTES):
        of_day = exp(swing * sin(tau * minute / DAY))
        levels = OLD if minute < 0 else dict.fromkeys(new, middle * slower)
        for host, level in levels.items():
            count = calls(minute)
            row = instance(
                f"{'b' if minute < 0 else 'c'}-{host}",
                host=host,
                first_minute=-history - 10 if minute < 0 else 0,
                calls=count,
            )
            yield replace(row, minute=minute, p50=level * of_day)


def judged(rows: Iterator[InstanceMinute]) -> tuple[Outcome, Evidence]:
    outcome = judge(rows, now_minute=MINUTES, deployed_minute=0)
    return outcome, next(row for row in outcome.evidence if row.metric == "p50")


def test_change_and_interval_match_the_formula() -> None:
    outcome, row = judged(blue_green(1.2))
    apart = log(OLD["y"] / OLD["x"]) / 2
    df = P50.prior_df + 2
    variance = (P50.prior_df * prior_by_hand(P50, COMPARED) + 2 * apart**2) / df
    # Two hosts of each version, and the difference between days, which all of them share.
    margin = t.ppf(1 - tail_by_hand(P50), df) * sqrt(variance * (1 / 2 + 1 / 2) + P50.day_variance)
    assert row.change == pytest.approx(0.2)
    assert (row.low, row.high) == (
        pytest.approx(1.2 * exp(-margin) - 1),
        pytest.approx(1.2 * exp(margin) - 1),
    )
    assert (row.baseline_instances, row.candidate_instances) == (2, 2)
    assert (outcome.layouts, outcome.comparable_share) == (("pool_day_before",), 1.0)
    assert outcome.not_compared == () or {one.why for one in outcome.not_compared} == {
        "after_the_baseline_ended"
    }


def test_a_shorter_past_is_adjusted_for_load() -> None:
    def calls(minute: int) -> int:
        return 100 * (1 + minute % 4)

    outcome, row = judged(blue_green(1.1, history=600, calls=calls, swing=0.0))
    assert outcome.layouts == ("pool_by_load",)
    assert row.change == pytest.approx(0.1)


def test_a_host_with_a_past_is_compared_with_it_and_a_new_one_with_the_pool() -> None:
    outcome, row = judged(blue_green(1.0, new=("x", "p")))
    assert set(outcome.layouts) == {"day_before", "pool_day_before"}
    assert sorted((dot.arm, dot.instance) for dot in row.dots) == [
        ("baseline", "x"),
        ("baseline", "x"),
        ("baseline", "y"),
        ("candidate", "c-p"),
        ("candidate", "x"),
    ]


def test_pods_that_follow_each_other_do_not_add_information() -> None:
    def rows(pods: int) -> Iterator[InstanceMinute]:
        for row in blue_green(1.2, new=("p",)):
            name = f"p{row.minute * pods // MINUTES}" if row.arm == "candidate" else row.host
            yield replace(row, host=name, unit=f"{row.arm} {name}")

    one, six = (judged(rows(pods))[1] for pods in (1, 6))
    assert one.change == pytest.approx(six.change)
    assert one.low is not None and six.low is not None
    assert abs(one.low - six.low) < 0.04


def test_without_certainty_an_instance_of_the_baseline_is_asked_for() -> None:
    outcome, _ = judged(blue_green(1.0, new=("p",)))
    assert outcome.verdict == "not_enough_data"
    assert outcome.next_step is not None and outcome.next_step.kind == "run_side_by_side"


def test_a_baseline_that_returns_is_no_pool() -> None:
    rows = [row for row in blue_green(1.2) if row.minute < 0 or row.minute < 20 or row.minute >= 40]
    back = [
        replace(row, minute=row.minute + 180)
        for row in blue_green(1.0)
        if row.arm == "baseline" and -160 <= row.minute < -140
    ]
    outcome, _ = judged(iter([*rows, *back]))
    assert {one.why for one in outcome.not_compared} == {
        "after_the_baseline_ended",
        "no_baseline_on_host",
    }


def find(name: str) -> Iterator[dict[str, object]]:
    (scenario,) = [one for one in scenarios() if one.name == name]
    for fleet in scenario.fleets(4, 720, "tuning"):
        yield watch(fleet, LEARNED)


def test_a_fifth_slower_on_other_nodes_is_found() -> None:
    found = list(find("blue/green on other nodes, +20%"))
    assert sum("roll_back" in dict_of(one) for one in found) >= 3


@pytest.mark.parametrize("name", ["", ", restarts"])
def test_equal_versions_on_other_nodes_are_left_alone(name: str) -> None:
    found = list(find(f"blue/green on other nodes{name}, healthy"))
    assert not any("roll_back" in dict_of(one) for one in found)
    assert sum(one["final"] == "healthy" for one in found) >= 2


def dict_of(result: dict[str, object]) -> dict[str, int]:
    """The first minute of each verdict."""
    transitions = result["transitions"]
    assert isinstance(transitions, list)
    return {verdict: minute for minute, verdict in reversed(transitions)}
