"""A fault in one shape bucket or on one GPU type is found and named, and healthy cohorts are found
at most as often as their part of the budget allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dashboard.regressions.judge import InstanceMinute, Outcome, judge
from dashboard.regressions.judge.text.verdict import verdict_sentence
from tests.dashboard.regressions.fleets import ROW

MINUTES = 150


def fleet(slow: dict[tuple[str, str], float], seed: int = 1) -> Iterator[InstanceMinute]:
    """Four instances of each version on each of two GPU types, with two buckets. `slow` has the
    factor of the candidate by GPU type and bucket."""
    rng = np.random.default_rng(seed)
    units = [
        (arm, gpu, number, float(rng.normal(0, 0.02)))
        for arm in ("baseline", "candidate")
        for gpu in ("A100", "H100")
        for number in range(4)
    ]
    for minute in range(MINUTES):
        for arm, gpu, number, host in units:
            for bucket in ("2^10", "2^12"):
                factor = slow.get((gpu, bucket), 1.0) if arm == "candidate" else 1.0
                yield replace(
                    ROW,
                    instance=f"{arm[0]}{gpu}{number}",
                    unit=f"{arm[0]}{gpu}{number}",
                    arm=arm,
                    stratum=(gpu, "default"),
                    bucket=bucket,
                    minute=minute,
                    p50=0.010 * factor * float(np.exp(host + rng.normal(0, 0.02))),
                )


def outcome_of(slow: dict[tuple[str, str], float], seed: int = 1) -> Outcome:
    return judge(fleet(slow, seed), now_minute=MINUTES, deployed_minute=0)


def sentence_of(outcome: Outcome) -> str:
    return verdict_sentence(outcome, candidate="v2", baseline="v1", say_minute=str, cause=None)


def test_a_bucket_is_named() -> None:
    outcome = outcome_of({("A100", "2^12"): 1.13, ("H100", "2^12"): 1.13})
    row = next(row for row in outcome.evidence if row.metric == "p50")
    assert outcome.verdict == "roll_back"
    if row.cohort is not None:
        assert row.cohort == ("bucket", "2^12")
        assert "for shapes 2^12" in sentence_of(outcome)


def test_a_gpu_type_is_named() -> None:
    outcome = outcome_of({("A100", "2^10"): 1.2, ("A100", "2^12"): 1.2})
    assert outcome.verdict == "roll_back"
    assert "on A100" in sentence_of(outcome)


@pytest.mark.parametrize("seed", range(12))
def test_healthy_cohorts_raise_nothing(seed: int) -> None:
    outcome = outcome_of({}, seed)
    assert {kind for _, kind in outcome.transitions} <= {"not_enough_data", "healthy"}
