"""A leaking version that has replaced its baseline is found: its growth is compared with the growth
of the baseline before its end."""

from __future__ import annotations

import pytest

from dashboard.regressions.judge import Comparison, Evidence, Outcome, evaluate_comparison
from dashboard.regressions.judge.text.verdict import verdict_sentence
from tests.bench.fleet_sim import Fleet, instance_minutes
from tests.bench.process_sim import instance_states, simulate_processes

ALL_AT_ONCE = {
    "sequential": True,
    "gpus": ("H100",),
    "baseline_per_gpu": 4,
    "history": 720,
    "stagger": 0,
    "minutes": 400,
}


def watched(fleet: Fleet, *, with_past: bool = True) -> Outcome:
    comparison = Comparison(0, with_past=with_past)
    minutes = zip(
        instance_minutes(fleet, -fleet.history), instance_states(fleet, -fleet.history), strict=True
    )
    for index, (rows, states) in enumerate(minutes):
        comparison.add_minute(index - fleet.history, rows, states)
    return evaluate_comparison(comparison, now_minute=fleet.minutes)


def leak_row(outcome: Outcome) -> Evidence:
    return next(row for row in outcome.evidence if row.metric == "leak")


@pytest.mark.parametrize("stagger", [0, 20])
def test_a_leak_of_two_percent_an_hour_asks_for_a_roll_back(stagger: int):
    outcome = watched(
        Fleet(seed=610_030, fault="leak", size=0.02, **{**ALL_AT_ONCE, "stagger": stagger})
    )  # type: ignore[arg-type]
    found = leak_row(outcome)
    assert (outcome.verdict, found.label, found.drives, found.layouts) == (
        "roll_back",
        "REGRESSED",
        True,
        ("last_day",),
    )
    assert found.change == pytest.approx(0.02, abs=0.006)
    assert (found.baseline_instances, found.candidate_instances) == (4, 4)
    said = verdict_sentence(outcome, candidate="new", baseline="old", say_minute=str).replace(
        "\u00a0", " "
    )
    assert "GPU memory grows by" in said


def test_a_leak_is_not_healthy_at_six_hours():
    outcome = watched(Fleet(seed=610_031, fault="leak", size=0.02, **ALL_AT_ONCE))  # type: ignore[arg-type]
    assert not [
        verdict for minute, verdict in outcome.transitions if minute >= 240 and verdict == "healthy"
    ]


def test_a_leak_on_one_of_four_instances_is_not_healthy_at_six_hours():
    outcome = watched(Fleet(seed=610_034, fault="leak", size=0.02, affected=0.25, **ALL_AT_ONCE))  # type: ignore[arg-type]
    assert not [
        verdict for minute, verdict in outcome.transitions if minute >= 360 and verdict == "healthy"
    ]
    assert outcome.verdict != "healthy"


def test_a_version_that_grows_like_its_baseline_is_not_rolled_back():
    outcome = watched(Fleet(seed=610_032, **ALL_AT_ONCE))  # type: ignore[arg-type]
    assert leak_row(outcome).label in ("NO CHANGE", "NOT ENOUGH DATA")
    assert outcome.verdict == "healthy"


def test_without_history_of_the_baseline_there_is_no_slope():
    outcome = watched(Fleet(seed=610_030, fault="leak", size=0.02, **ALL_AT_ONCE), with_past=False)  # type: ignore[arg-type]
    assert "leak" not in {row.metric for row in outcome.evidence}
    assert outcome.verdict != "healthy"


def test_all_instances_of_a_simulated_rollout_have_the_fault():
    """`candidates` is a share of the candidate's instances, even if they equal the number of
    baseline hosts."""
    drawn = simulate_processes(Fleet(seed=1, fault="memory", size=0.5, **ALL_AT_ONCE))  # type: ignore[arg-type]
    assert (drawn.gpu_peak[drawn.candidate, -1] > 40e9).all()
