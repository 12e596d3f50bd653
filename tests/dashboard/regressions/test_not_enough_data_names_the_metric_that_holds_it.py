"""NOT ENOUGH DATA names the metric that holds back HEALTHY, the estimate so far, the change that
would be detected in 90% of cases, and the kind of data that helps."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from scipy.stats import t

from dashboard.regressions.judge import PRODUCTION, Outcome, judge
from dashboard.regressions.judge.pooled_estimate import combine, group, t_quantile
from dashboard.regressions.judge.settings import P50, RatioMetric, Settings
from tests.dashboard.regressions.fleets import every_minute, instance
from tests.dashboard.regressions.test_a_verdict_is_one_sentence import judged, sentence_of
from tests.dashboard.regressions.test_the_change_is_what_the_formula_gives_by_hand import (
    prior_by_hand,
    tail_by_hand,
)

BASE = [instance(f"b{i}") for i in range(6)]
TAIL = {"calls": 1000, "p50": 0.010, "p99": 0.020}


def by_hand(minutes: int, baseline: int, candidate: int) -> tuple[float, float]:
    """Half the width of the interval of p50, and the change that is detected in 90% of cases, on
    the log scale. The instances of an arm are equal, so all squares are zero."""
    df = P50.prior_df + baseline + candidate - 2
    variance = P50.prior_df * prior_by_hand(P50, minutes) / df
    error = math.sqrt(variance * (1 / baseline + 1 / candidate))
    margin = t.ppf(1 - tail_by_hand(P50), df) * error
    return margin, margin + t.ppf(0.9, df) * error


def say(change: float) -> str:
    """A change on the log scale as a whole percentage."""
    return f"{math.expm1(change) * 100:.0f}%".replace("-", "−")


def falling_prior(settings: Settings) -> Settings:
    """Settings of a fleet whose instances differ less the longer they run."""
    metrics = [
        replace(metric, prior_variance=((20, 0.05**2), (60, 0.05**2), (1400, 0.005**2)))
        if isinstance(metric, RatioMetric)
        else metric
        for metric in settings.metrics
    ]
    return replace(settings, metrics=tuple(metrics))


def held(outcome: Outcome) -> tuple[str, str]:
    assert outcome.verdict == "not_enough_data" and outcome.held_by is not None
    return outcome.held_by.metric, outcome.held_by.helps


def test_only_the_next_check_is_missing() -> None:
    outcome = judged([*BASE, instance("c1", p50=0.01005)], 30)
    assert held(outcome) == ("p50", "time")
    assert outcome.next_step is not None
    assert (outcome.next_step.kind, outcome.next_step.minutes) == ("wait", 30)
    margin, visible = by_hand(30, 6, 1)
    delta = math.log(1.005)
    assert sentence_of(outcome) == (
        f"Next check at 10:00. So far, p50 call time is 0.5% slower ({say(delta - margin)[1:]} faster to "
        f"{say(delta + margin)} slower, limit 10%) than 2026.11.2, 10.1 ms instead of 10 ms. "
        f"A regression of {say(visible)} would be detected in 90% of cases."
    )


def test_one_instance_a_version_needs_more_instances() -> None:
    outcome = judged([instance("b1"), instance("c1", p50=0.0104)], 70)
    assert held(outcome) == ("p50", "instances")
    sentence = sentence_of(outcome)
    margin, visible = by_hand(70, 1, 1)
    delta = math.log(1.04)
    error = math.sqrt(prior_by_hand(P50, 70) * (1 / 3 + 1))
    df = P50.prior_df + 2
    with_two = (t.ppf(1 - tail_by_hand(P50), df) + t.ppf(0.9, df)) * error
    assert sentence == (
        f"Not enough data on p50 call time: 4% slower ({say(delta - margin)[1:]} faster to "
        f"{say(delta + margin)} slower, limit 10%) than 2026.11.2, 10.4 ms instead of 10 ms. "
        f"A regression of {say(visible)} would be detected in 90% of cases. "
        "More time alone does not help. Add 2 baseline instances on H100 to detect a regression of "
        f"{say(with_two)}. Next check at 12:00."
    )


def test_few_calls_need_more_calls() -> None:
    outcome = judged([instance("b1", calls=5), instance("c1", calls=5)], 100)
    assert held(outcome) == ("p50", "calls")
    assert sentence_of(outcome).endswith(
        "in 90% of cases. Send each instance at least 20 calls per minute. Next check at 12:00."
    )


def test_a_variance_that_falls_with_time_needs_time() -> None:
    rows = list(every_minute([instance("b1"), instance("c1")], 100))
    outcome = judge(rows, now_minute=100, deployed_minute=0, settings=falling_prior(PRODUCTION))
    assert held(outcome) == ("p50", "time")
    assert "More time helps. Next check at 12:00." in sentence_of(outcome)


def test_the_metric_that_is_furthest_from_its_tolerance_is_named() -> None:
    rows = [instance(f"b{i}", **TAIL) for i in range(3)]
    rows += [instance(f"c{i}", **{**TAIL, "p99": 0.0224}) for i in range(3)]
    outcome = judged(rows, 70)
    assert outcome.held_by is not None and outcome.held_by.metric == "p99"
    (p99,) = (row for row in outcome.evidence if row.metric == "p99")
    assert (outcome.held_by.change, outcome.held_by.low, outcome.held_by.high) == (
        p99.change,
        p99.low,
        p99.high,
    )


def test_other_verdicts_are_held_by_no_metric() -> None:
    outcome = judged([*BASE, *(instance(f"c{i}") for i in range(6))])
    assert (outcome.verdict, outcome.held_by) == ("healthy", None)


@pytest.mark.parametrize("candidates", [1, 4])
def test_the_visible_change_is_detected_in_about_90_percent_of_cases(candidates: int) -> None:
    """Draws fleets of the assumed variance with a true change of this size, and counts those whose
    interval excludes zero."""
    rows = [*BASE, *(instance(f"c{i}") for i in range(candidates))]
    outcome = judged(rows, 30)
    assert outcome.held_by is not None and outcome.held_by.visible_90 is not None
    size, dice, seen = math.log1p(outcome.held_by.visible_90), random.Random(7), 0
    variance = prior_by_hand(P50, 30) * P50.prior_df / (P50.prior_df + 5 + candidates - 1)
    spread = math.sqrt(variance)
    for _ in range(1000):
        found = combine(
            [
                group(
                    "H100",
                    {i: dice.gauss(0.0, spread) for i in range(6)},
                    {i: dice.gauss(size, spread) for i in range(candidates)},
                )
            ],
            variance,
            P50.prior_df,
        )
        seen += found.delta > found.error * t_quantile(found.df, tail_by_hand(P50))
    assert 870 <= seen <= 930
