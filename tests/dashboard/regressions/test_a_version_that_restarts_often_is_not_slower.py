"""Warm-up and restarts: processes that are 40% slower at their start, over 30 minutes, in a version
that restarts every 75 minutes."""

from __future__ import annotations

from dataclasses import replace

from dashboard.regressions.judge import Outcome
from dashboard.regressions.judge.result import Evidence
from tests.bench.fleet_sim import Fleet
from tests.dashboard.regressions.young_fleets import ONLY, Youth, evaluate, with_learned

RESTARTING = Youth(restart_minutes=75)
SEEDS = range(772_000, 772_006)
FLEET = Fleet(minutes=480, history=60, candidates=4)


def p50(outcome: Outcome) -> Evidence:
    return next(row for row in outcome.evidence if row.metric == "p50")


def kinds(outcome: Outcome) -> set[str]:
    return {kind for _, kind in outcome.transitions}


def test_the_learned_warm_up_prevents_a_false_roll_back_that_the_default_raises() -> None:
    default = [evaluate(replace(FLEET, seed=seed), RESTARTING, ONLY) for seed in SEEDS]
    learned = [evaluate(replace(FLEET, seed=seed), RESTARTING, with_learned(30)) for seed in SEEDS]
    assert any("roll_back" in kinds(outcome) for outcome in default)
    assert all(not kinds(outcome) & {"roll_back", "watch"} for outcome in learned)
    mean = [
        sum(p50(one).change or 0.0 for one in found) / len(SEEDS) for found in (default, learned)
    ]
    assert mean[0] > 0.03 > mean[1]


def test_a_slower_version_is_still_found() -> None:
    slow = replace(FLEET, fault="slow", size=0.2)
    outcomes = [evaluate(replace(slow, seed=s), RESTARTING, with_learned(30)) for s in SEEDS[:3]]
    assert [outcome.verdict for outcome in outcomes] == ["roll_back"] * 3


def test_a_fault_within_the_warm_up_is_not_judged_and_its_share_is_stated() -> None:
    """The limit of every warm-up: a version that is 20% slower in its first hour only is found with a warm-up
    of 5 minutes, and not with one of an hour."""
    slow = Youth(slower=0.2, decay=False, settled_minutes=60)
    seen = [
        evaluate(
            replace(FLEET, seed=772_001, candidates=6, minutes=240), slow, with_learned(minutes)
        )
        for minutes in (5, 60)
    ]
    assert "roll_back" in kinds(seen[0])
    assert not kinds(seen[1]) & {"roll_back", "watch"}
    shares = [outcome.warm_up.candidate.share for outcome in seen if outcome.warm_up]
    assert shares[0] < 0.05
    assert 0.2 < shares[1] < 0.35
