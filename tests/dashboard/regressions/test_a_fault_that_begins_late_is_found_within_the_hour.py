"""A fault that begins hours after the deployment is found by a trailing window, long before the
mean since the deployment shows it."""

from __future__ import annotations

from dashboard.regressions.judge import PRODUCTION, Comparison, evaluate_comparison
from tests.bench.fleet_sim import Fleet, instance_minutes

ONSET, MINUTES = 240, 420
FLEETS = 8


def watched(fleet: Fleet, settings=PRODUCTION) -> Comparison:
    """The comparison after the whole fleet."""
    comparison = Comparison(0, settings)
    for minute, rows in enumerate(instance_minutes(fleet, -fleet.history), -fleet.history):
        comparison.add_minute(minute, rows)
    return comparison


def first(comparison: Comparison, verdict: str) -> int | None:
    """The minute of the first such verdict."""
    return next((minute for minute, kind in comparison.policy.transitions if kind == verdict), None)


def fleets(**changes: object) -> list[Fleet]:
    """Four instances of each version."""
    return [
        Fleet(
            seed=2_900_000 + number,
            gpus=("H100",),
            baseline_per_gpu=4,
            candidates=4,
            stagger=1,
            minutes=MINUTES,
            **changes,
        )
        for number in range(FLEETS)
    ]


def test_a_fifth_slower_from_the_fourth_hour_on_is_found_soon() -> None:
    minutes = [
        first(watched(fleet), "roll_back") for fleet in fleets(fault="slow", size=0.2, onset=ONSET)
    ]
    delays = sorted(minute - ONSET for minute in minutes if minute is not None)
    assert len(delays) >= FLEETS - 1
    assert delays[0] > 0
    assert delays[len(delays) // 2] <= 75


def test_the_sentence_states_the_window() -> None:
    comparison = watched(fleets(fault="slow", size=0.2, onset=ONSET)[0])
    outcome = evaluate_comparison(comparison, now_minute=ONSET + 90)
    windows = {row.window_minutes for row in outcome.evidence if row.metric == "p50"}
    assert windows <= {0, 60, 240}


def test_a_healthy_fleet_raises_no_window() -> None:
    assert not any(first(watched(fleet), "roll_back") for fleet in fleets())


def test_a_fault_from_the_beginning_cancels_in_the_window() -> None:
    """The mean since the deployment shows it; the window would only add a second alarm."""
    comparison = watched(fleets(fault="slow", size=0.2)[0])
    series = comparison.regions["forward"].entries[0][0]
    assert first(comparison, "roll_back") is not None
    assert series.trailing == {}
