"""Hysteresis: ROLL BACK ends when the last half hour has recovered, regardless of the mean since
the deployment."""

from dataclasses import replace

from dashboard.regressions.judge import PRODUCTION, Settings, judge
from dashboard.regressions.judge.level_reading import ROLL_BACK_SETTLE, WATCH_SETTLE
from dashboard.regressions.judge.settings import P50
from tests.dashboard.regressions.fleets import every_minute, instance

BASE = [instance("b1"), instance("b2"), instance("b3")]
SLOW = [*BASE, instance("c1", p50=0.020), instance("c2", p50=0.020)]
WELL = [*BASE, instance("c1", p50=0.010), instance("c2", p50=0.010)]
MODERATE = [instance(f"b{i}") for i in range(12)] + [
    instance(f"c{i}", p50=0.011) for i in range(12)
]
"""A change of up to twice the smallest effect: the full hold time applies."""
LEANS_AT = ROLL_BACK_SETTLE[0] - 1
"""The minute from which a change that is not gross counts."""


def judged(*phases: tuple[list, int], settings: Settings = PRODUCTION):
    rows, start = [], 0
    for instances, minutes in phases:
        rows += every_minute(instances, minutes, start=start)
        start += minutes
    return judge(rows, now_minute=start, deployed_minute=0, settings=settings)


def test_ten_minutes_with_twenty_matched_minutes_are_needed():
    last = LEANS_AT + P50.hold_minutes - 1
    assert judged((MODERATE, last)).verdict == "watch"
    outcome = judged((MODERATE, last + 1))
    assert (outcome.verdict, outcome.since) == ("roll_back", last)
    watched = WATCH_SETTLE[0] - 1 + PRODUCTION.watch_minutes - 1
    assert outcome.transitions == ((0, "not_enough_data"), (watched, "watch"), (last, "roll_back"))
    # The matched minutes bind if they are more than the hold time leaves.
    assert PRODUCTION.matched_minutes == 20
    careful = replace(PRODUCTION, matched_minutes=30)
    assert judged((MODERATE, 29), settings=careful).verdict == "watch"
    assert judged((MODERATE, 30), settings=careful).since == 29


def test_roll_back_remains_until_the_last_half_hour_has_recovered():
    assert judged((SLOW, 60), (WELL, 28)).verdict == "roll_back"
    assert judged((SLOW, 60), (WELL, 30)).verdict == "watch"


def test_roll_back_does_not_return_because_of_the_running_mean():
    outcome = judged((SLOW, 60), (WELL, 60))
    assert [verdict for _, verdict in outcome.transitions].count("roll_back") == 1


def test_roll_back_returns_with_the_fault():
    outcome = judged((SLOW, 60), (WELL, 60), (SLOW, 60))
    assert outcome.verdict == "roll_back"
    assert [verdict for _, verdict in outcome.transitions].count("roll_back") == 2


def test_a_pause_without_data_neither_ends_nor_fills_a_hold():
    # Five minutes of the hold time are before the pause, and five must be after it.
    before = LEANS_AT + P50.hold_minutes // 2
    rows = [*every_minute(MODERATE, before), *every_minute(MODERATE, 4, start=40)]
    assert judge(rows, now_minute=44, deployed_minute=0).verdict == "watch"
    rows = [*every_minute(MODERATE, before), *every_minute(MODERATE, 5, start=40)]
    outcome = judge(rows, now_minute=45, deployed_minute=0)
    assert (outcome.verdict, outcome.since) == ("roll_back", 44)
