"""A change that a busy or throttled host explains is no ROLL BACK on a single instance: it begins
late, or it is short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from dashboard.regressions.judge import PRODUCTION, Comparison, InstanceMinute, Outcome, judge
from dashboard.regressions.judge.cohorts import Cohort
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.level_reading import is_late
from dashboard.regressions.judge.text.verdict import verdict_sentence
from tests.dashboard.regressions.fleets import ROW

MINUTES = 360


def fleet(factor: Callable[[int], float], minutes: int) -> Iterator[InstanceMinute]:
    """One candidate next to six instances of the baseline."""
    rng = np.random.default_rng(3)
    units = [("baseline", f"b{i}", float(rng.normal(0, 0.02))) for i in range(6)]
    units.append(("candidate", "c1", 0.0))
    for minute in range(minutes):
        for arm, name, host in units:
            slow = factor(minute) if arm == "candidate" else 1.0
            level = 0.010 * slow * float(np.exp(host + rng.normal(0, 0.02)))
            yield replace(ROW, instance=name, unit=name, arm=arm, minute=minute, p50=level)


def outcome_of(factor: Callable[[int], float], minutes: int = MINUTES) -> Outcome:
    return judge(fleet(factor, minutes), now_minute=minutes, deployed_minute=0)


def verdicts(outcome: Outcome) -> set[str]:
    return {verdict for _, verdict in outcome.transitions}


def test_a_host_throttled_after_two_hours_is_watched() -> None:
    found = verdicts(outcome_of(lambda minute: 1.8 if minute >= 120 else 1.0))
    assert "watch" in found and "roll_back" not in found


def test_the_same_change_from_the_deployment_on_is_rolled_back() -> None:
    assert outcome_of(lambda minute: 1.5).verdict == "roll_back"


def test_two_busy_neighbours_of_ten_minutes_raise_no_roll_back() -> None:
    burst = outcome_of(lambda minute: 2.2 if 100 <= minute < 110 else 1.0, 115)
    assert "roll_back" not in verdicts(burst)


def test_five_times_slower_is_rolled_back_within_minutes() -> None:
    outcome = outcome_of(lambda minute: 5.0 if minute >= 100 else 1.0, 112)
    assert outcome.verdict == "roll_back"


def test_twice_as_slow_is_rolled_back_after_a_quarter_of_an_hour() -> None:
    outcome = outcome_of(lambda minute: 2.2 if minute >= 100 else 1.0, 122)
    assert outcome.verdict == "roll_back"


def test_a_short_gross_change_is_described_by_its_half_hour() -> None:
    """The mean of an hour in which the version was faster hides the last nine minutes."""
    outcome = outcome_of(lambda minute: 3.3 if minute >= 66 else 0.85, 75)
    sentence = verdict_sentence(outcome, candidate="v2", baseline="v1", say_minute=str)
    assert outcome.verdict == "roll_back"
    assert "p50 call time in the last 30\u00a0minutes is" in sentence
    assert "slower" in sentence and "no recovery" not in sentence


def test_a_fault_of_one_bucket_from_the_deployment_on_is_not_late() -> None:
    """The change of all calls is less than half of the bucket's, in the first hour and later."""
    comparison = Comparison(0, PRODUCTION)
    buckets = {"2^10": fleet(lambda _: 0.98, 150), "2^12": fleet(lambda _: 1.3, 150)}
    minutes: dict[int, list[InstanceMinute]] = {}
    for bucket, rows in buckets.items():
        for row in rows:
            minutes.setdefault(row.minute, []).append(replace(row, bucket=bucket))
    for minute, of_minute in minutes.items():
        comparison.add_minute(minute, of_minute)
    series, _ = comparison.regions["forward"].entries[0]
    assert isinstance(series, RatioSeries)
    assert not is_late(series, series.cohorts[Cohort("bucket", "2^12")])
