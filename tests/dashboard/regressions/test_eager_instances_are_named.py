"""Affected-instance rule for eager calls: its threshold, its hold time, and the cases without a
finding."""

import pytest

from dashboard.regressions.judge import Outcome, judge
from tests.bench.fleet_sim import Fleet, instance_minutes
from tests.dashboard.regressions.fleets import every_minute, instance


def eager(share: float, calls: int = 100) -> dict[str, object]:
    count = round(share * calls)
    return {
        "calls": calls,
        "compiled": calls - count,
        "eager": count,
        "eager_by": {"limit": count} if count else {},
    }


def judged(before: list, after: list, minutes_after: int, minutes_before: int = 40) -> Outcome:
    rows = [
        *every_minute(before, minutes_before),
        *every_minute(after, minutes_after, start=minutes_before),
    ]
    return judge(rows, now_minute=minutes_before + minutes_after, deployed_minute=0)


def row_of(outcome: Outcome):
    return next(row for row in outcome.evidence if row.metric == "eager")


CALM = [instance("b1"), instance("c1"), instance("c2")]
ONE_OF_TWO = [instance("b1"), instance("c1"), instance("c2", **eager(0.5))]


def test_one_eager_instance_of_two_is_a_roll_back_after_exactly_the_hold_time():
    assert judged(CALM, ONE_OF_TWO, 9).verdict == "watch"
    outcome = judged(CALM, ONE_OF_TWO, 10)
    assert (outcome.verdict, outcome.since) == ("roll_back", 49)
    row = row_of(outcome)
    assert (row.label, row.affected_instances, row.candidate_instances, row.since, row.drives) == (
        "REGRESSED",
        1,
        2,
        40,
        True,
    )
    assert row.affected_share == 0.5
    assert row.causes == {"limit": 500}
    assert row.baseline == 0.0


def test_a_simulated_eager_instance_is_found_at_its_hold_time():
    fleet = Fleet(
        seed=91_000, candidates=2, minutes=120, fault="eager", size=0.5, affected=0.5, onset=60
    )
    rows = [row for minute in instance_minutes(fleet) for row in minute]
    outcome = judge(rows, now_minute=120, deployed_minute=0)
    # The second instance starts 20 minutes later, and its hold time counts from there; one minute
    # of
    # eager calls is not yet certainly over 2%.
    assert (outcome.verdict, outcome.since) in {("roll_back", 70), ("roll_back", 90)}
    assert row_of(outcome).affected_instances == 1


def test_two_percent_is_not_over_two_percent():
    outcome = judged(CALM, [instance("b1"), instance("c1"), instance("c2", **eager(0.02))], 30)
    assert row_of(outcome).label == "NO CHANGE"
    assert outcome.verdict != "roll_back"


def test_an_eager_baseline_disables_the_rule():
    both = [instance("b1", **eager(0.5)), instance("c1"), instance("c2", **eager(0.5))]
    outcome = judged(CALM, both, 30)
    assert row_of(outcome).label == "NO CHANGE"
    assert outcome.verdict != "roll_back"


def test_more_eager_than_an_eager_baseline_is_undecided():
    both = [instance("b1", **eager(0.05)), instance("c1"), instance("c2", **eager(0.9))]
    row = row_of(judged(CALM, both, 30))
    assert (row.label, row.reason) == ("NOT ENOUGH DATA", "baseline_affected")


def test_a_candidate_that_stopped_being_eager_is_improved():
    rows = [instance("b1", **eager(0.5)), instance("c1")]
    assert row_of(judged(rows, rows, 10)).label == "IMPROVED"


@pytest.mark.parametrize("calm_minutes", [29, 30])
def test_roll_back_ends_after_half_an_hour_without_an_eager_call(calm_minutes: int):
    rows = [
        *every_minute(CALM, 40),
        *every_minute(ONE_OF_TWO, 20, start=40),
        *every_minute(CALM, calm_minutes, start=60),
    ]
    outcome = judge(rows, now_minute=60 + calm_minutes, deployed_minute=0)
    assert (outcome.verdict == "roll_back") == (calm_minutes < 30)


def test_shares_are_of_the_sampled_calls():
    looked_at = {"calls": 1000, "compiled": 7, "eager": 3, "eager_by": {"limit": 3}}
    outcome = judged(
        [instance("b1"), instance("c1")], [instance("b1"), instance("c1", **looked_at)], 20
    )
    assert outcome.verdict == "roll_back"
    assert row_of(outcome).candidate == pytest.approx(0.3)


def test_unsampled_calls_do_not_count_as_compiled():
    blind = [instance("b1", compiled=0), instance("c1", compiled=0)]
    row = row_of(judged(blind, blind, 20))
    assert row.label == "NOT ENOUGH DATA"
    assert row.candidate is None
