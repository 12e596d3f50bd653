"""The budget of a verdict bounds the chance that a healthy path ever crosses its boundary, and all
parts together spend it once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dashboard.regressions.judge import PRODUCTION
from dashboard.regressions.judge.error_budget import (
    TESTS_PER_WINDOW,
    find_crossing,
    find_tail,
    find_window_tail,
    tail_sigmas,
)
from dashboard.regressions.judge.settings import EAGER, P50, RatioMetric

PATHS, STEPS = 40_000, 400


@pytest.mark.parametrize(("rate", "ratio"), [(0.05, 2.0), (0.05, 10.0), (0.01, 4.0)])
def test_a_healthy_path_crosses_at_most_as_often_as_the_rate(rate: float, ratio: float) -> None:
    """Brownian motion, observed at 400 times while its information grows by the ratio."""
    rng = np.random.default_rng(29)
    times = np.exp(np.linspace(0.0, math.log(ratio), STEPS))
    steps = np.sqrt(np.diff(np.concatenate([[0.0], times])))
    paths = np.cumsum(rng.standard_normal((PATHS, STEPS)) * steps, axis=1) / np.sqrt(times)
    crossed = float((paths.max(axis=1) > tail_sigmas(find_tail(rate, ratio))).mean())
    assert 0.6 * rate < crossed < rate + 3 * math.sqrt(rate / PATHS)


def test_the_sequential_p_value_is_the_inverse_of_the_boundary() -> None:
    assert find_crossing(find_tail(0.01, 5.0), 5.0) == pytest.approx(0.01, rel=1e-6)
    assert find_crossing(0.4, 5.0) == 1.0


def test_the_parts_of_all_metrics_are_at_most_the_rate() -> None:
    budget = PRODUCTION.budget()
    levels = [m for m in PRODUCTION.metrics if not (isinstance(m, RatioMetric) and m.instead_of)]
    everything = [*levels, *PRODUCTION.process_metrics]
    hard = math.fsum(budget.part(m, "roll_back") for m in everything if m.hard)
    assert hard == pytest.approx(PRODUCTION.roll_back_alpha)
    total = math.fsum(budget.part(m, "watch") for m in everything)
    assert total == pytest.approx(PRODUCTION.watch_alpha)


def test_a_muted_metric_pays_nothing() -> None:
    metrics = tuple(replace(m, muted=m.name == "p99") for m in PRODUCTION.metrics)
    muted = replace(PRODUCTION, metrics=metrics).budget()
    assert muted.part(P50, "roll_back") > PRODUCTION.budget().part(P50, "roll_back")


def test_regions_share_one_half_and_the_estimate_over_all_has_the_other() -> None:
    one, many = PRODUCTION.budget(1), PRODUCTION.budget(20)
    assert 20 * many.part(EAGER, "watch") == pytest.approx(one.part(EAGER, "watch") / 2)
    assert many.pooled().part(P50, "watch") == pytest.approx(one.part(P50, "watch") / 2)


def test_the_windows_of_all_days_spend_their_rate_once() -> None:
    tails = [find_window_tail(0.01, 60, 1440 * day - 720) for day in range(1, 500)]
    assert 24 * TESTS_PER_WINDOW * math.fsum(tails) == pytest.approx(0.01, rel=0.01)
