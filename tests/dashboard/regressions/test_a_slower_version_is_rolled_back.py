"""Simulated fleets with a slower candidate: found within about the minutes that the procedure is
known to need."""

from statistics import median

from dashboard.regressions.judge import PRODUCTION, Comparison, Settings, evaluate_comparison
from tests.bench.fleet_sim import Fleet, instance_minutes
from tests.dashboard.regressions.fleets import LEARNED


def roll_back_minute(fleet: Fleet, settings: Settings = PRODUCTION) -> int | None:
    comparison = Comparison(0, settings)
    for minute, rows in enumerate(instance_minutes(fleet)):
        comparison.add_minute(minute, rows)
        if comparison.policy.verdict == "roll_back":
            return minute
    return None


def test_a_version_half_as_slow_again_is_found_as_soon_as_the_hold_times_allow():
    found = [
        roll_back_minute(Fleet(seed=81_000 + seed, minutes=120, fault="slow", size=0.5))
        for seed in range(8)
    ]
    assert all(minute is not None and 24 <= minute <= 60 for minute in found)


def test_a_fifth_slower_is_found_on_two_instances_of_six_within_hours():
    fleets = [
        Fleet(seed=82_000 + seed, candidates=2, minutes=600, fault="slow", size=0.2)
        for seed in range(10)
    ]
    found = [minute for fleet in fleets if (minute := roll_back_minute(fleet, LEARNED)) is not None]
    assert len(found) >= 9
    assert 24 <= median(found) <= 120


def test_a_single_canary_that_is_a_fifth_slower_is_found_about_every_other_time():
    fleets = [Fleet(seed=83_000 + seed, minutes=720, fault="slow", size=0.2) for seed in range(14)]
    found = [minute for fleet in fleets if (minute := roll_back_minute(fleet, LEARNED)) is not None]
    assert 4 <= len(found) <= 14
    assert 24 <= median(found) <= 260


def test_a_fault_that_starts_later_is_found_after_its_start():
    comparison = Comparison(0)
    for minute, rows in enumerate(
        instance_minutes(
            Fleet(seed=84_000, candidates=2, minutes=400, fault="slow", size=1.0, onset=120)
        )
    ):
        comparison.add_minute(minute, rows)
    outcome = evaluate_comparison(comparison, now_minute=400)
    assert outcome.verdict == "roll_back"
    assert outcome.since > 120
    (row,) = [row for row in outcome.evidence if row.drives]
    assert (row.metric, row.label, row.affected_instances) == ("p50", "REGRESSED", 2)
    assert row.onset and row.onset[0] <= 120 <= row.onset[1] < row.onset[0] + 3
    assert row.onset[0] <= row.since <= row.onset[1]


def test_a_slower_version_is_never_healthy_at_the_fixed_looks():
    for seed in range(6):
        comparison = Comparison(0)
        for minute, rows in enumerate(
            instance_minutes(
                Fleet(seed=85_000 + seed, candidates=2, minutes=400, fault="slow", size=0.25)
            )
        ):
            comparison.add_minute(minute, rows)
        assert "healthy" not in [verdict for _, verdict in comparison.policy.transitions]
