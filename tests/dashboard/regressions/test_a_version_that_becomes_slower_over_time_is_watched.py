"""A version that was healthy on its first day and slows down later is WATCH, with any behaviour of
its baseline; daily cycle and load are no drift."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator

import pytest

from dashboard.regressions.judge import Comparison, InstanceMinute, evaluate_comparison
from dashboard.regressions.judge.inputs import CellRows, Traffic
from dashboard.regressions.judge.self_drift import CusumDetector
from dashboard.regressions.judge.settings import P50, PRODUCTION
from dashboard.regressions.judge.text.verdict import verdict_sentence
from dashboard.ui.charts.fact_lines import fact_lines
from tests.dashboard.regressions.fleets import instance

DAY = 1440
Level = Callable[[int], float]


def fleet(
    minutes: range, slower: Level, *, names: str = "c0 c1 b0 b1"
) -> Iterator[tuple[int, list[InstanceMinute]]]:
    """Two instances of each version; calls and latencies follow the day, every instance wanders
    slightly, and all slow down alike."""
    for minute in minutes:
        day = math.sin(2 * math.pi * minute / DAY)
        rows = []
        for number, name in enumerate(names.split()):
            wander = 0.01 * math.sin(minute / (7.0 + number)) + 0.01 * math.sin(
                minute / (61.0 + 5 * number)
            )
            took = 0.010 * math.exp(0.05 * day + wander + math.log1p(slower(minute)))
            calls = round(300 * (1 + 0.5 * day))
            rows.append(instance(name, minute=minute, calls=calls, p50=took, p99=2 * took))
        yield minute, rows


def followed(slower: Level, minutes: int, comparison: Comparison) -> Comparison:
    begin = 0 if comparison.minute is None else comparison.minute + 1
    for minute, rows in fleet(range(begin, minutes), slower):
        comparison.add_minute(minute, rows)
    return comparison


def step(minute: int) -> float:
    return 0.25 if 2000 <= minute < 2600 else 0.0


def test_a_later_slowdown_of_both_versions_is_watched_reported_and_ends() -> None:
    comparison = followed(step, 2000, Comparison(0))
    assert comparison.policy.verdict == "healthy"
    followed(step, 2200, comparison)
    outcome = evaluate_comparison(comparison, now_minute=2200)
    (found,) = outcome.drift
    assert outcome.verdict == "watch" and 1990 <= found.since <= 2010
    assert 0.2 < found.change < 0.3 and found.instances == 2
    said = verdict_sentence(
        outcome, candidate="v2", baseline="v1", say_minute=lambda minute: f"minute {minute}"
    )
    assert said.startswith("V2 is drifting: p50 of `forward` is 2") and said.endswith(
        "not a reason to roll back on its own."
    )
    evidence = json.loads(json.dumps(outcome.as_dict()))
    assert [line.where for line in fact_lines(evidence)] == [
        "over 2\u00a0instances"
    ] and not fact_lines(evidence, sentence=said)
    followed(step, 2900, comparison)
    assert (
        evaluate_comparison(comparison, now_minute=2900).drift == ()
        and comparison.policy.verdict == "healthy"
    )
    assert "roll_back" not in {verdict for _, verdict in comparison.policy.transitions}


def drift_of(slower: Level, minutes: int, *, turned: bool = False) -> CusumDetector:
    """The drift level of the candidate alone."""
    found = CusumDetector(P50, PRODUCTION)
    for minute, rows in fleet(range(minutes), slower, names="c0 c1"):
        found.add(
            "forward",
            minute,
            {("H100", ""): CellRows(Traffic(), candidate=rows[::-1] if turned else rows)},
        )
    return found


@pytest.mark.parametrize(
    "slower",
    [
        lambda _: 0.0,
        lambda minute: 0.04 * (minute >= 2000),
        lambda minute: 0.5 * (minute % DAY == 700),
    ],
)
def test_daily_cycles_small_changes_and_single_minutes_are_not_watched(slower: Level) -> None:
    assert drift_of(slower, 2880).drifted is None


def test_a_slow_increase_over_days_is_found_in_any_order_of_rows() -> None:
    slope: Level = lambda minute: max(0.0, (minute - DAY) * 0.15 / DAY)  # noqa: E731
    found = drift_of(slope, 2 * DAY + 600).drifted
    assert found is not None and found.change > 0.1
    assert drift_of(slope, 2 * DAY + 600, turned=True).drifted == found


def test_another_set_of_instances_has_its_own_level() -> None:
    found = drift_of(lambda _: 0.0, 1600)
    for minute, rows in fleet(range(1600, 2400), lambda _: 0.3, names="c7 c8"):
        found.add("forward", minute, {("H100", ""): CellRows(Traffic(), candidate=rows)})
        assert found.drifted is None
