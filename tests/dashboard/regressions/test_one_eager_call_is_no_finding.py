"""Eager rule: it needs five sampled events and a binomial bound above 2%; a wholly eager version is
found at any traffic."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy.stats import beta

from dashboard.regressions.judge import InstanceMinute, judge
from dashboard.regressions.judge.instance_windows import exceeds_threshold
from dashboard.regressions.judge.settings import EAGER
from tests.bench.bench_simple_rules import CASES, Case, known, verdicts
from tests.dashboard.regressions.fleets import every_minute, instance

BY_NAME = {case.name: case for case in CASES}


def first(case: Case, verdict: str) -> int | None:
    return next((minute for minute, said in verdicts(case) if said == verdict), None)


@pytest.mark.parametrize(
    "name", ["one eager call of 30 looked up in 15 minutes", "six eager calls within one minute"]
)
def test_eager_calls_of_one_minute_change_no_verdict(name: str) -> None:
    assert verdicts(BY_NAME[name]) == [(0, "not_enough_data"), (59, "healthy")]


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("one of three candidates wholly eager, 60 calls a minute, a tenth looked up", 20),
        ("the only candidate wholly eager, 5 calls a minute, all looked up", 20),
        ("the only candidate wholly eager, 5 calls a minute, a tenth looked up", 30),
    ],
)
def test_a_wholly_eager_candidate_is_rolled_back(name: str, by: int) -> None:
    found = first(BY_NAME[name], "roll_back")
    assert found is not None and found <= by


@pytest.mark.parametrize(
    ("events", "calls"),
    [(5, 5), (5, 38), (5, 39), (4, 4), (15, 293), (15, 294), (300, 10_000), (200, 10_000)],
)
def test_the_bound_is_that_of_clopper_and_pearson(events: int, calls: int) -> None:
    lower = beta.ppf(EAGER.tail, events, calls - events + 1)
    assert exceeds_threshold(events, calls, EAGER) == (events >= 5 and lower > 0.02)


def test_a_small_share_of_few_calls_is_found_after_enough_samples() -> None:
    """A twentieth of two sampled calls a minute: 15 minutes contain one or two events, four hours
    twenty-four."""

    def seldom(row: InstanceMinute) -> InstanceMinute:
        return known(row, 20, 2, int(row.arm == "candidate" and row.minute % 10 == 0))

    watched = verdicts(Case("a twentieth eager", 1, 600, seldom))
    assert "watch" in {said for _, said in watched}


def test_a_recovered_instance_is_not_named_for_one_later_call() -> None:
    def recovered(row: InstanceMinute) -> InstanceMinute:
        eager = row.arm == "candidate" and (row.minute < 60 or row.minute == 200)
        return known(row, 20, 2, (2 if row.minute < 60 else 1) if eager else 0)

    later = [
        said for minute, said in verdicts(Case("recovered", 2, 300, recovered)) if minute >= 130
    ]
    assert not {"watch", "roll_back"} & set(later)


def test_a_lone_eager_call_of_the_baseline_is_no_improvement() -> None:
    rows = [instance("b1", calls=2), instance("c1", calls=2)]
    once = [replace(rows[0], compiled=1, eager=1, eager_by={"limit": 1}), rows[1]]
    minutes = [
        *every_minute(rows, 40),
        *every_minute(once, 1, start=40),
        *every_minute(rows, 5, start=41),
    ]
    outcome = judge(minutes, now_minute=46, deployed_minute=0)
    assert next(row.label for row in outcome.evidence if row.metric == "eager") == "NO CHANGE"


def test_a_possibly_eager_baseline_is_not_treated_as_compiled() -> None:
    """Three of its thirty sampled calls are eager, too few for certainty, and a tenth of the
    candidate's calls as well."""

    def alike(row: InstanceMinute) -> InstanceMinute:
        often = row.arm == "candidate"
        return known(row, 300, 30, 3) if often else known(row, 20, 2, int(row.minute % 5 == 0))

    assert "roll_back" not in {said for _, said in verdicts(Case("alike", 1, 120, alike))}
