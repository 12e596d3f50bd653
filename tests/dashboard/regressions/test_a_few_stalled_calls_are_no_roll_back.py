"""Calls that wait for a compilation after a start or for a rare shape are no ROLL BACK; waiting
calls in every minute quickly are."""

from __future__ import annotations

import pytest

from dashboard.regressions.judge import JudgeContext, Outcome, judge
from dashboard.regressions.judge.certain_facts import CertainFact, describe_fact
from tests.bench.fleet_sim import Fleet
from tests.bench.stall_sim import Stalling, stalling_minutes
from tests.dashboard.regressions.fleets import every_minute, instance


def judged(fleet: Fleet, stalling: Stalling) -> Outcome:
    rows = [row for minute in stalling_minutes(fleet, stalling) for row in minute]
    return judge(rows, now_minute=fleet.minutes, deployed_minute=0)


@pytest.mark.parametrize(("calls", "candidates"), [(20.0, 2), (60.0, 1), (300.0, 2)])
def test_a_healthy_fleet_with_new_shapes_is_not_rolled_back(calls: float, candidates: int) -> None:
    for seed in range(3):
        fleet = Fleet(
            seed=97_000 + seed, candidates=candidates, minutes=150, calls_per_minute=calls
        )
        outcome = judged(fleet, Stalling(shapes=8, seconds=10.0, waiting=2))
        assert "roll_back" not in {verdict for _, verdict in outcome.transitions}
        assert not any(fact.severity == "roll_back" for fact in outcome.facts)


@pytest.mark.parametrize("share", [0.05, 1 / 3, 1.0])
def test_calls_that_wait_in_every_minute_are_a_roll_back_within_the_hour(share: float) -> None:
    outcome = judged(
        Fleet(seed=97_100, candidates=2, minutes=70), Stalling(shapes=8, seconds=0.6, share=share)
    )
    row = next(row for row in outcome.evidence if row.metric == "stalled")
    assert (outcome.verdict, row.label, row.drives) == ("roll_back", "REGRESSED", True)
    assert row.candidate == pytest.approx(share, abs=0.02)
    assert next(minute for minute, verdict in outcome.transitions if verdict == "roll_back") <= 60


def after_the_baseline_ended(*, baseline_stalls: int) -> CertainFact:
    """Certain facts about a version with half of its calls stalled, an hour after the baseline's
    last call."""
    rows = [*every_minute([instance("b1", stalled=baseline_stalls, stalled_sum=5.0)], 60)]
    rows += every_minute([instance("c1", first_minute=0, stalled=50, stalled_sum=30.0)], 120)
    outcome = judge(
        rows, now_minute=120, deployed_minute=0, known=JudgeContext(stalled_budget=0.02)
    )
    return next(fact for fact in outcome.facts if fact.kind == "stalled_calls")


def test_facts_of_an_ended_baseline_are_remembered() -> None:
    fine = after_the_baseline_ended(baseline_stalls=0)
    assert (fine.severity, fine.baseline_silent) == ("roll_back", False), (
        "the agents of the baseline reported stalled calls, and there were none"
    )
    stalled = after_the_baseline_ended(baseline_stalls=50)
    assert (stalled.severity, stalled.on_baseline) == ("watch", 1), (
        "the absence of the other version makes it no regression"
    )


@pytest.mark.parametrize(
    ("stalled", "seconds", "words"),
    [
        (
            (100, 5, 5),
            (60.0, 3.0, 3.0),
            "3,300 of 9,000\u00a0calls (36.7%) waited for a compilation in the last half hour, above "
            "the budget of 2% (1,980\u00a0s in total)",
        ),
        (
            (100, 0, 0),
            (60.0, 0.0, 0.0),
            "3,000 of 3,000\u00a0calls (100%) waited for a compilation in the last half hour, above the "
            "budget of 2% (1,800\u00a0s in total)",
        ),
    ],
)
def test_the_sentence_sums_the_instances_beyond_the_budget(
    stalled: tuple[int, ...], seconds: tuple[float, ...], words: str
) -> None:
    each = zip(("c1", "c2", "c3"), stalled, seconds, strict=True)
    rows = [
        instance(name, calls=100, stalled=count, stalled_sum=spent) for name, count, spent in each
    ]
    outcome = judge(
        every_minute(rows, 60),
        now_minute=60,
        deployed_minute=0,
        known=JudgeContext(stalled_budget=0.02),
    )
    (fact,) = outcome.facts
    assert (fact.why, describe_fact(fact)) == (words, words)
    assert len(fact.instances) == sum(count > 2 for count in stalled)
