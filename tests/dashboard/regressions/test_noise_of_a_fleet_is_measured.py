"""The noise of a fleet between hours is measured on its own baseline: a noisy fleet needs a larger
change, a quiet one keeps the prior."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.regressions.judge.serial_noise import SerialNoise

PRIOR, PRIOR_DF = 0.03**2, 15


def measured(sd: float, hours: int = 24, units: int = 6) -> float:
    """The variance of an hour after a day of simulated hours."""
    rng, noise = np.random.default_rng(5), SerialNoise(PRIOR, PRIOR_DF)
    hosts = rng.normal(0, 0.05, units)
    for _ in range(hours):
        levels = hosts + rng.normal(0, sd, units)
        apart = levels - levels.mean()
        noise.add("cell", dict(enumerate(apart)), 1 - 1 / units)
    return noise.hour_variance


@pytest.mark.parametrize("sd", [0.02, 0.08, 0.15])
def test_the_variance_within_units_is_found_without_the_difference_of_hosts(sd: float) -> None:
    expected = (PRIOR_DF * PRIOR + 138 * sd**2) / (PRIOR_DF + 138)
    assert measured(sd) == pytest.approx(expected, rel=0.25)


def test_without_data_the_prior_holds() -> None:
    assert SerialNoise(PRIOR, PRIOR_DF).hour_variance == pytest.approx(PRIOR)


def test_only_noise_beyond_the_assumed_one_adds_and_it_shrinks_with_time() -> None:
    noise = SerialNoise(PRIOR, 1)
    assert noise.excess(60) == 0.0
    for level in (0.0, 0.2, -0.2, 0.1):
        noise.add("cell", {"unit": level}, 1.0)
    early, hour, day = (noise.excess(at) for at in (5, 60, 1440))
    assert early == pytest.approx(3 * hour)
    assert hour == pytest.approx(noise.hour_variance - PRIOR)
    assert 0.0 < day < hour / 4
