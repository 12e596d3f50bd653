"""Errors: the formula by hand, the rule that decided, storms found and held, short bursts ignored,
and rates if the baseline fails too."""

from math import exp, log, sqrt

import pytest
from scipy.stats import t

from dashboard.regressions.judge import PRODUCTION, Outcome, judge
from dashboard.regressions.judge.error_budget import find_tail
from dashboard.regressions.judge.rate_ratio import RATE_GROWTH, Sums, estimate_rate
from dashboard.regressions.judge.result import Evidence
from dashboard.regressions.judge.settings import ERRORS
from dashboard.regressions.judge.text.verdict import verdict_sentence
from tests.dashboard.regressions.fleets import every_minute, instance
from tests.dashboard.regressions.test_the_change_is_what_the_formula_gives_by_hand import (
    rate_by_hand,
)


def judged(*phases: tuple[list, int]) -> Outcome:
    rows, start = [], 0
    for instances, minutes in phases:
        rows += every_minute(instances, minutes, start=start)
        start += minutes
    return judge(rows, now_minute=start, deployed_minute=0)


def row_of(outcome: Outcome, metric: str = "errors") -> Evidence:
    return next(row for row in outcome.evidence if row.metric == metric)


def fleet(base_errors: int, cand_errors: int, instances: int = 3, calls: int = 1000) -> list:
    base = [instance(f"b{i}", calls=calls, errors=base_errors) for i in range(instances)]
    return base + [instance(f"c{i}", calls=calls, errors=cand_errors) for i in range(instances)]


def test_a_rate_matches_the_formula_by_hand():
    rate = estimate_rate(
        [(Sums(10, 10_000, 30, 5_000), 3, 2), (Sums(4, 1_000, 2, 500), 1, 1)],
        dispersion=0.5,
        prior_df=15,
    )
    assert rate is not None
    expected = 5_000 * 10 / 10_000 + 500 * 4 / 1_000
    assert rate.expected == expected == 7
    assert rate.delta == pytest.approx(log(32.5 / 7.5))
    assert rate.error == pytest.approx(sqrt(1 / 32.5 + 1 / 14.5 + 0.25 * (1 / 3 + 1 / 4)))
    assert (rate.share, rate.baseline) == (pytest.approx(32 / 5_500), pytest.approx(7 / 5_500))


def test_the_interval_matches_the_formula():
    row = row_of(judged((fleet(2, 9), 30)))
    delta = log((3 * 9 * 30 + 0.5) / (3 * 2 * 30 + 0.5))
    error = sqrt(1 / (3 * 9 * 30 + 0.5) + 1 / (3 * 2 * 30 + 0.5) + 0.25 * (1 / 3 + 1 / 3))
    tail = find_tail(rate_by_hand(ERRORS), RATE_GROWTH)
    margin = t.ppf(1 - tail, PRODUCTION.prior_df) * error
    assert (row.change, row.low, row.high) == tuple(
        pytest.approx(exp(each) - 1) for each in (delta, delta - margin, delta + margin)
    )
    assert (row.baseline, row.candidate) == (pytest.approx(0.002), pytest.approx(0.009))
    assert (row.times, row.points, row.tolerated) == (2.0, 0.002, 2.0)


def test_a_confirmed_increase_of_the_rate_is_a_roll_back_after_half_an_hour():
    calm, storm = fleet(2, 2, instances=12), fleet(2, 9, instances=12)
    assert judged((calm, 20), (storm, 40)).verdict == "watch"
    outcome = judged((calm, 20), (storm, 60))
    row = row_of(outcome)
    assert (outcome.verdict, row.label, row.rule, row.affected_instances) == (
        "roll_back",
        "REGRESSED",
        "rate",
        0,
    )


def test_a_failing_instance_is_named_by_the_rule_and_held_for_half_an_hour():
    calm = [instance("b1"), instance("c1"), instance("c2")]
    storm = [*calm[:2], instance("c2", errors=20)]
    before = judged((calm, 20), (storm, 30))
    assert before.verdict == "watch"
    # The storm reaches thirty errors in its second minute.
    outcome = judged((calm, 20), (storm, 31))
    row = row_of(outcome)
    assert (outcome.verdict, outcome.since, row.rule, row.affected_instances, row.change) == (
        "roll_back",
        50,
        "affected",
        1,
        None,
    )


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_a_burst_of_three_minutes_is_no_roll_back(share: float):
    burst = fleet(1, round(share * 1000))
    outcome = judged((fleet(1, 1), 40), (burst, 3), (fleet(1, 1), 60))
    assert "roll_back" not in [verdict for _, verdict in outcome.transitions]


def test_few_errors_are_no_storm():
    outcome = judged(
        (fleet(0, 0, calls=50), 60),
        ([*fleet(0, 0, calls=50)[:5], instance("c2", calls=50, errors=1)], 4),
    )
    assert row_of(outcome).label != "REGRESSED"


def test_a_baseline_that_fails_equally_often_is_no_change():
    outcome = judged((fleet(20, 20, instances=6), 120))
    row = row_of(outcome)
    assert (row.rule, outcome.verdict) == ("", "healthy")
    assert row.label in ("NO CHANGE", "NOT ENOUGH DATA")


def test_a_failing_baseline_does_not_hide_a_candidate_that_fails_far_more():
    outcome = judged((fleet(20, 400, instances=6), 60))
    assert (outcome.verdict, row_of(outcome).rule) == ("roll_back", "rate")


def test_fewer_errors_are_improved():
    row = row_of(judged((fleet(30, 1, instances=6), 60)))
    assert (row.label, row.change < 0) == ("IMPROVED", True)


def test_no_errors_on_either_side_is_no_change_and_does_not_delay_healthy():
    outcome = judged((fleet(0, 0, instances=6), 60))
    row = row_of(outcome)
    assert (row.label, row.change, row.baseline, row.candidate) == ("NO CHANGE", None, 0.0, 0.0)
    assert outcome.verdict == "healthy"


def test_roll_back_ends_when_half_an_hour_shows_the_old_rate():
    calm, storm = fleet(2, 2, instances=12), fleet(2, 9, instances=12)
    assert judged((calm, 20), (storm, 60), (calm, 10)).verdict == "roll_back"
    assert judged((calm, 20), (storm, 60), (calm, 31)).verdict != "roll_back"


def test_eager_calls_are_compared_as_a_rate_if_the_baseline_is_eager_too():
    def eager(name: str, share: float):
        count = round(share * 100)
        return instance(name, compiled=100 - count, eager=count, eager_by={"limit": count})

    fleets = [eager(f"b{i}", 0.04) for i in range(12)] + [eager(f"c{i}", 0.6) for i in range(12)]
    outcome = judged((fleets, 40))
    row = row_of(outcome, "eager")
    assert (outcome.verdict, row.label, row.rule, row.affected_instances) == (
        "roll_back",
        "REGRESSED",
        "rate",
        12,
    )
    assert (row.baseline, row.candidate) == (pytest.approx(0.04), pytest.approx(0.6))


def test_a_quiet_version_with_only_failing_calls_is_found_by_its_rate():
    """One call a minute and instance is too little to evaluate a single instance; a thousand calls
    that all failed are enough."""
    base = [instance(f"b{i}", calls=100) for i in range(4)]
    outcome = judged(([*base, *[instance(f"c{i}", calls=1, errors=1) for i in range(4)]], 120))
    row = row_of(outcome)
    assert (outcome.verdict, row.rule, row.candidate, row.candidate_instances) == (
        "roll_back",
        "rate",
        1.0,
        4,
    )
    said = verdict_sentence(outcome, candidate="v2", baseline="v1", say_minute=str)
    assert said.startswith(
        "Roll back v2: 480 of 480\u00a0calls (100%) fail over 4 instances since "
    )
    calm = judged(([*base, *[instance(f"c{i}", calls=1) for i in range(4)]], 120))
    assert (row_of(calm).label, row_of(calm).reason) == ("NOT ENOUGH DATA", "too_few_calls")
