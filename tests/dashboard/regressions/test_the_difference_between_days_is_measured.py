"""A version that follows its baseline is compared with another day. Hourly levels of earlier days
show how far days differ, and what the same weekday changed a week earlier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import exp, log

import numpy as np
import pytest

from dashboard.regressions.judge import Comparison, InstanceMinute, Outcome, evaluate_comparison
from dashboard.regressions.judge.day_history import DayHistory, DayShifts
from dashboard.regressions.judge.result import Evidence
from dashboard.regressions.judge.settings import P50, PRODUCTION
from dashboard.regressions.judge.text.verdict import verdict_sentence
from tests.bench.fleet_scenarios import scenarios
from tests.bench.judge_trials import watch
from tests.dashboard.regressions.fleets import instance

DAY, HOUR, DAYS, MINUTES = 1440, 60, 16, 90
WEEKEND = 0.15
Level = Callable[[int], float]
"""The log level of a day; the deployment is on day 0."""


def day_of(minute: int) -> int:
    """Days begin three hours before the time of the deployment."""
    return (minute + 3 * HOUR) // DAY


def hours(level: Level, version: Callable[[int], str] = lambda _: "old") -> list[InstanceMinute]:
    return [
        instance(version(day_of(minute)), minute=minute, p50=0.010 * exp(level(day_of(minute))))
        for minute in range(-DAYS * DAY, 0, HOUR)
    ]


def shifts(rows: list[InstanceMinute]) -> DayShifts:
    return DayHistory(rows, 0).read_shifts("forward", P50, 20)


def weekend(day: int) -> float:
    """Days 0 and 6 of a week are slower: the deployment is on the first of them."""
    return WEEKEND if day % 7 in (0, 1) else 0.0


def steps(day: int) -> float:
    return float(np.random.default_rng(100 + day).normal(0, 0.08))


def test_without_hours_the_assumed_variance_holds() -> None:
    found = shifts([])
    assert (found.variance, found.slope, found.expect(0)) == (P50.day_variance, 0.0, 0.0)


def test_equal_days_narrow_and_different_days_widen_the_variance() -> None:
    assert shifts(hours(lambda _: 0.0)).variance < P50.day_variance / 2
    assert shifts(hours(steps)).variance > 4 * P50.day_variance


def test_a_change_of_version_is_no_difference_between_days() -> None:
    found = shifts(hours(lambda day: 0.3 * (day >= -3), lambda day: f"v{day >= -3}"))
    assert found.variance < P50.day_variance / 2


def test_a_weekly_cycle_is_expected_and_other_changes_are_not() -> None:
    weekly = shifts(hours(weekend))
    assert 0.8 * WEEKEND < weekly.expect(200) < WEEKEND
    assert weekly.variance < P50.day_variance
    assert abs(shifts(hours(steps)).expect(200)) < 0.03


def test_less_than_eleven_days_show_no_weekly_cycle() -> None:
    found = shifts([row for row in hours(weekend) if row.minute >= -10 * DAY])
    assert found.expect(200) == 0.0
    assert found.variance > P50.day_variance


def fleet(slower: float) -> Iterator[InstanceMinute]:
    """Four hosts change their version at once, as the weekend begins."""
    for minute in range(-DAY, MINUTES):
        for number in range(4):
            arm = "b" if minute < 0 else "c"
            level = weekend(day_of(minute)) + (log(slower) if minute >= 0 else 0.0)
            row = instance(f"{arm}{number}", host=f"h{number}", minute=minute)
            yield replace(row, first_minute=-DAY - 10 if minute < 0 else 0, p50=0.010 * exp(level))


def compared(slower: float, rows: list[InstanceMinute]) -> tuple[Outcome, Evidence]:
    comparison = Comparison(0, with_past=True, days=DayHistory(rows, 0))
    minutes: dict[int, list[InstanceMinute]] = {}
    for row in fleet(slower):
        minutes.setdefault(row.minute, []).append(row)
    for minute, found in minutes.items():
        comparison.add_minute(minute, found)
    outcome = evaluate_comparison(comparison, now_minute=MINUTES)
    return outcome, next(row for row in outcome.evidence if row.metric == "p50")


def test_a_slower_weekend_is_no_regression_and_the_reference_is_named() -> None:
    alone, row = compared(1.0, [])
    assert row.change == pytest.approx(exp(WEEKEND) - 1) and alone.verdict == "roll_back"
    outcome, row = compared(1.0, hours(weekend))
    assert row.change is not None and abs(row.change) < 0.03
    assert outcome.layouts == ("day_before_by_weekday",)
    assert outcome.verdict == "healthy"
    said = verdict_sentence(outcome, candidate="new", baseline="old", say_minute=str)
    assert "on the same hosts 24\u00a0h earlier, adjusted for the weekday" in said


def test_a_slower_version_is_found_on_a_slower_weekend() -> None:
    outcome, row = compared(1.3, hours(weekend))
    assert outcome.verdict == "roll_back"
    assert row.change == pytest.approx(0.3, abs=0.04)


@pytest.mark.parametrize("where", ["", " on other nodes"])
def test_simulated_weekends_are_left_alone(where: str) -> None:
    name = f"blue/green{where}, 16 days of hours, weekends, healthy"
    (scenario,) = [one for one in scenarios() if one.name == name]
    for one in scenario.fleets(3, 480, "tuning"):
        assert not {"roll_back", "watch"} & {
            verdict for _, verdict in watch(one, PRODUCTION)["transitions"]
        }
