"""Size of a drift: the mean since its beginning, not its strongest interval; a busy half hour
within a drift changes neither date nor size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dashboard.regressions.judge.self_drift import (
    BLOCK_MINUTES,
    DAY_BLOCKS,
    CusumDetector,
    FirstDayModel,
    SelfDrift,
)
from dashboard.regressions.judge.settings import P50, PRODUCTION
from tests.dashboard.regressions.test_a_version_that_becomes_slower_over_time_is_watched import (
    drift_of,
)

ONSET = 2000


def test_a_busy_half_hour_within_a_drift_does_not_change_its_size() -> None:
    def spiky(minute: int) -> float:
        return 0.0 if minute < ONSET else 0.75 if ONSET + 300 <= minute < ONSET + 340 else 0.12

    found = drift_of(spiky, ONSET + 345).drifted
    assert found is not None
    assert abs(found.since - ONSET) <= 2 * BLOCK_MINUTES
    mean = math.expm1((300 * math.log(1.12) + 40 * math.log(1.75)) / 340)
    assert found.change == pytest.approx(mean, abs=0.03)


@pytest.mark.parametrize(("size", "after"), [(0.15, 180), (0.25, 90), (0.25, 600)])
def test_a_step_is_reported_with_its_size(size: float, after: int) -> None:
    found = drift_of(lambda minute: size * (minute >= ONSET), ONSET + after).drifted
    assert found is not None and found.change == pytest.approx(size, abs=0.03)


def drifted(rng: np.random.Generator, size: float) -> SelfDrift | None:
    """A step after normal wandering of one instance; returns the drift an hour after its alarm."""
    drift, own = (
        CusumDetector(P50, PRODUCTION),
        FirstDayModel({}, 0.0, np.zeros(4), 0.0, 0.03, 0.03, 0.86, 0, 1439),
    )
    level, alarm = 0.0, None
    for block in range(3 * DAY_BLOCKS):
        level = 0.86 * level + rng.normal(0, 0.03 * math.sqrt(1 - 0.86**2))
        drift._step("forward", block, level + math.log1p(size) * (block >= DAY_BLOCKS), 1, own)
        alarm = block if alarm is None and drift.drifted else alarm
        if alarm is not None and block == alarm + 12:
            return drift.drifted
    return None


def test_the_mean_of_many_reported_drifts_is_the_true_change() -> None:
    rng = np.random.default_rng(11)
    found = [one.change for one in (drifted(rng, 0.2) for _ in range(60)) if one is not None]
    assert len(found) >= 55 and np.mean(found) == pytest.approx(0.2, abs=0.01)
