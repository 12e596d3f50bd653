"""Hysteresis: ROLL BACK ends when the last half hour has recovered, regardless of the mean since
the deployment."""

from dashboard.regressions.judge import judge
from tests.dashboard.regressions.fleets import every_minute, instance

BASE = [instance("b1"), instance("b2"), instance("b3")]
SLOW = [*BASE, instance("c1", p50=0.020), instance("c2", p50=0.020)]
WELL = [*BASE, instance("c1", p50=0.010), instance("c2", p50=0.010)]


def judged(*phases: tuple[list, int]):
    rows, start = [], 0
    for instances, minutes in phases:
        rows += every_minute(instances, minutes, start=start)
        start += minutes
    return judge(rows, now_minute=start, deployed_minute=0)


def test_ten_minutes_with_twenty_matched_minutes_are_needed():
    assert judged((SLOW, 19)).verdict == "watch"
    outcome = judged((SLOW, 20))
    assert (outcome.verdict, outcome.since) == ("roll_back", 19)
    assert outcome.transitions == ((0, "not_enough_data"), (13, "watch"), (19, "roll_back"))


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
    rows = [*every_minute(SLOW, 16), *every_minute(SLOW, 3, start=40)]
    assert judge(rows, now_minute=43, deployed_minute=0).verdict == "watch"
    rows = [*every_minute(SLOW, 16), *every_minute(SLOW, 4, start=40)]
    outcome = judge(rows, now_minute=44, deployed_minute=0)
    assert (outcome.verdict, outcome.since) == ("roll_back", 43)
