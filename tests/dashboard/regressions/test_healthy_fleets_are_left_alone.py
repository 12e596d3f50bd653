"""Simulated fleets without a fault: no ROLL BACK under any confounder."""

import pytest

from dashboard.regressions.judge import Comparison, evaluate_comparison
from tests.bench.fleet_sim import Fleet, instance_minutes
from tests.bench.fleet_worlds import CONFOUNDERS


def watched(fleet: Fleet) -> Comparison:
    comparison = Comparison(0)
    for minute, rows in enumerate(instance_minutes(fleet)):
        comparison.add_minute(minute, rows)
    return comparison


def verdicts(comparison: Comparison) -> list[str]:
    return [verdict for _, verdict in comparison.policy.transitions]


@pytest.mark.parametrize("candidates", [1, 2])
def test_the_same_version_twice_is_never_rolled_back(candidates: int):
    said = [
        verdicts(watched(Fleet(seed=71_000 + seed, candidates=candidates, minutes=480)))
        for seed in range(15)
    ]
    assert not any("roll_back" in each for each in said)
    assert sum("healthy" in each for each in said) >= 5


@pytest.mark.parametrize("name", [name for name in CONFOUNDERS if name != "same"])
def test_a_confounder_is_never_a_roll_back(name: str):
    for seed in range(4):
        fleet = Fleet(seed=72_000 + seed, candidates=2, minutes=400, **CONFOUNDERS[name])
        assert "roll_back" not in verdicts(watched(fleet))


def test_a_shifted_mix_is_reported_separately_from_the_change():
    comparison = watched(Fleet(seed=73_000, candidates=2, minutes=240, candidate_mix=0.25))
    outcome = evaluate_comparison(comparison, now_minute=240)
    (shift,) = outcome.mix_shift
    assert shift.change == pytest.approx(2.5**0.25 - 1, abs=0.06)
    p50 = next(row for row in outcome.evidence if row.metric == "p50")
    assert abs(p50.change) < 0.1
    assert "roll_back" not in verdicts(comparison)
