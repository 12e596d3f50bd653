"""The change of a trailing window varies as much as its error: the time before is a mean, too."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dashboard.regressions.judge import PRODUCTION
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.pooled_estimate import Estimate
from dashboard.regressions.judge.region_state import Region
from dashboard.regressions.judge.settings import P50
from tests.dashboard.regressions.fleets import instance

FLEETS, MINUTES = 100, 125
NOISE = math.sqrt(60 * 0.35 * 0.05**2)
"""An hour of it has the prior variance within an instance."""


def window_of(seed: int) -> Estimate:
    """The last hour of four instances of each version with independent noise of each minute."""
    rng = np.random.default_rng(seed)
    # Every window is of interest here, not only one that is worse.
    metric = replace(P50, smallest_effect=-0.99)
    region, series = Region("forward", PRODUCTION), RatioSeries(metric, PRODUCTION)
    found: dict[int, Estimate] = {}
    for minute in range(MINUTES):
        for name in ("b1", "b2", "b3", "b4", "c1", "c2", "c3", "c4"):
            p50 = 0.010 * float(np.exp(rng.normal(0, NOISE)))
            region.collect(replace(instance(name, p50=p50), minute=minute))
        series.add(minute, region.rows)
        region.rows = {}
        found = series.trailing or found
    return found[60]


def test_the_spread_of_windows_is_their_error() -> None:
    windows = [window_of(seed) for seed in range(FLEETS)]
    scores = [one.delta / one.error for one in windows]
    # Without the variance of the time before it is 1.67.
    assert 0.8 < float(np.std(scores)) < 1.4
