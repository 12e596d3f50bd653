"""Learning from pairs of a simulated fleet with known spread: the learned variance, day-to-day
variance and dispersion are close to the true values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dashboard.regressions.judge import PRODUCTION, Comparison, Settings
from dashboard.regressions.judge.pooled_estimate import prior_at
from dashboard.regressions.judge.prior_freedom import MAX_PRIOR_DF, MIN_PRIOR_DF, fit_prior_df
from dashboard.regressions.judge.process.inputs import START_MINUTES
from dashboard.regressions.judge.process.metrics import MissShareMetric
from dashboard.regressions.judge.settings import EAGER, P50
from dashboard.regressions.judge.settings_overrides import build_settings, round_variance
from dashboard.regressions.judge.variance_prior import (
    LEAST_PAIRS,
    MIN_VARIANCE_SHARE,
    DayPairs,
    Lesson,
    LessonSums,
    pool_lessons,
    sum_dispersion,
)
from tests.bench.fleet_sim import Fleet, instance_minutes
from tests.bench.process_sim import HIT_SD, HIT_SHARE, instance_states
from tests.dashboard.regressions.fleets import LEARNED_VARIANCE, instance

ONLY = Settings(metrics=(P50, EAGER))
SEEDS = range(640_000, 640_016)


def pair(fleet: Fleet) -> LessonSums:
    comparison, lesson = Comparison(0, ONLY), Lesson(ONLY)
    for minute, rows in enumerate(instance_minutes(fleet)):
        comparison.add_minute(minute, rows)
        lesson.observe(comparison, rows)
    return lesson.taught()


def spread(pairs: list[LessonSums]) -> dict[int, float]:
    return {
        minutes: math.sqrt(variance)
        for minutes, variance in pool_lessons(pairs, ONLY)["p50"].variance
    }


def test_a_known_difference_between_instances_is_learned() -> None:
    known = Fleet(
        minutes=40,
        candidates=2,
        stagger=0,
        minute_sd=0.0,
        bursts_per_day=0.0,
        fleet_sd=0.0,
        call_sd=0.05,
        gpus=("H100",),
    )
    learned = spread(
        [pair(replace(known, seed=seed, host_sd=0.03, process_sd=0.02)) for seed in SEEDS]
    )
    assert learned[30] == pytest.approx(math.hypot(0.03, 0.02), rel=0.25)
    wide = spread(
        [pair(replace(known, seed=seed, host_sd=0.09, process_sd=0.02)) for seed in SEEDS]
    )
    assert wide[30] == pytest.approx(math.hypot(0.09, 0.02), rel=0.25)


def test_a_wandering_fleet_differs_less_over_a_longer_time() -> None:
    learned = spread(
        [
            pair(Fleet(seed=seed, minutes=70, candidates=2, stagger=0, calls_per_minute=120))
            for seed in SEEDS
        ]
    )
    known = {minutes: math.sqrt(variance) for minutes, variance in LEARNED_VARIANCE}
    assert learned[10] == pytest.approx(known[10], rel=0.3)
    assert learned[60] == pytest.approx(known[60], rel=0.3)


def test_a_shift_of_the_whole_candidate_does_not_change_the_learned_spread() -> None:
    fleets = [
        Fleet(seed=seed, minutes=25, candidates=2, stagger=0, gpus=("H100",)) for seed in SEEDS
    ]
    same = spread([pair(fleet) for fleet in fleets])
    slower = spread([pair(replace(fleet, fault="slow", size=0.3)) for fleet in fleets])
    assert slower[10] == pytest.approx(same[10], rel=0.1)


def test_a_point_that_few_pairs_reached_is_left_out() -> None:
    long, short = (
        {"p50": {"points": {"10": [0.02, 8], "20": [0.01, 8]}}},
        {"p50": {"points": {"10": [0.02, 8]}}},
    )
    learned = pool_lessons([long] * (LEAST_PAIRS - 1) + [short], ONLY)["p50"]
    assert learned.pairs == LEAST_PAIRS
    assert learned.variance == ((10, pytest.approx(0.0025)),)


def test_instances_that_never_differ_give_no_zero_variance() -> None:
    pairs: list[LessonSums] = [{"p50": {"points": {"10": [0.0, 8]}}}] * 40
    least = MIN_VARIANCE_SHARE * prior_at(P50.prior_variance, 10)
    assert pool_lessons(pairs, ONLY)["p50"].variance == ((10, least),)
    assert least > 0.0


def draw_variances(prior_df: float, count: int = 2000, scale: float = 0.04) -> list[LessonSums]:
    """Lessons of pairs whose true variances are scaled inverse chi-squared with `prior_df` degrees
    of freedom; half of the pairs have few instances and half have many."""
    rng = np.random.default_rng(640_500)
    found: list[LessonSums] = []
    for number in range(count):
        df = 4 if number % 2 else 16
        variance = scale**2 * prior_df / rng.chisquare(prior_df)
        found.append({"p50": {"points": {"10": [variance * float(rng.chisquare(df)), df]}}})
    return found


@pytest.mark.parametrize("prior_df", [6, 15, 30])
def test_pairs_with_known_degrees_of_freedom_give_them_back(prior_df: int) -> None:
    pairs = draw_variances(prior_df)
    points = [pair["p50"]["points"]["10"] for pair in pairs]
    learned = fit_prior_df([(squares / df, df) for squares, df in points])
    assert 0.75 * prior_df <= learned <= 1.4 * prior_df
    assert pool_lessons(pairs, ONLY)["p50"].prior_df == learned


def test_equal_variances_give_the_most_degrees_of_freedom() -> None:
    assert fit_prior_df([(0.04**2, 8.0)] * 40) == MAX_PRIOR_DF


def test_wildly_different_variances_give_the_fewest_degrees_of_freedom() -> None:
    assert fit_prior_df([(10.0 ** (number % 5), 8.0) for number in range(40)]) == MIN_PRIOR_DF


def test_too_few_pairs_give_no_degrees_of_freedom() -> None:
    pairs = draw_variances(15, LEAST_PAIRS)
    assert pool_lessons(pairs, ONLY)["p50"].prior_df is not None
    assert pool_lessons(pairs[1:], ONLY)["p50"].prior_df is None


def test_pairs_without_a_common_minute_give_no_lesson() -> None:
    lesson, comparison = Lesson(ONLY), Comparison(0, ONLY)
    for minute in range(30):
        rows = [instance("c1", minute=minute)]
        comparison.add_minute(minute, rows)
        lesson.observe(comparison, rows)
    assert lesson.taught() == {}
    assert pool_lessons([{}] * 40) == {}


@dataclass(frozen=True, kw_only=True)
class Dispersed(type(EAGER)):  # type: ignore[misc]
    """A count that differs between instances beyond chance."""

    dispersion: float = 0.5


@pytest.mark.parametrize("variation", [0.2, 0.6])
def test_counts_give_their_dispersion_beyond_chance(variation: float) -> None:
    rng = np.random.default_rng(640_100)
    sums = []
    for _ in range(60):
        units = [
            (int(rng.poisson(100 * rng.gamma(1 / variation**2, variation**2))), 10_000)
            for _ in range(6)
        ]
        sums.append({"eager": {"counts": sum_dispersion([units])}})
    values = {
        **{name: getattr(EAGER, name) for name in EAGER.__dataclass_fields__},
        "dispersion": 0.5,
    }
    learned = pool_lessons(sums, replace(ONLY, metrics=(Dispersed(**values),)))["eager"].dispersion
    assert learned == pytest.approx(variation, rel=0.2)


def test_counts_that_vary_by_chance_alone_give_the_smallest_dispersion() -> None:
    rng = np.random.default_rng(640_200)
    beyond, scale = sum_dispersion([[(int(rng.poisson(100)), 10_000) for _ in range(400)]])
    assert abs(beyond / scale) < 0.05**2


def test_starts_give_the_dispersion_of_their_caches() -> None:
    pairs = []
    for seed in range(640_400, 640_440):
        fleet = Fleet(seed=seed, minutes=START_MINUTES + 1, candidates=4, stagger=0)
        comparison, lesson = Comparison(0), Lesson(PRODUCTION)
        for minute, states in enumerate(instance_states(fleet)):
            comparison.add_minute(minute, (), states)
            lesson.observe(comparison, ())
        pairs.append(lesson.taught())
    learned = pool_lessons(pairs)["cache"]
    assert learned.pairs == len(pairs)
    assert learned.dispersion is not None
    assert learned.dispersion == pytest.approx(HIT_SD / (1 - HIT_SHARE), rel=0.2)
    caches = [
        metric
        for metric in build_settings({}, {"cache": learned}).process_metrics
        if isinstance(metric, MissShareMetric)
    ]
    assert [metric.dispersion for metric in caches] == [round_variance(learned.dispersion)]


def test_days_separate_common_changes_from_changes_of_single_instances() -> None:
    rng = np.random.default_rng(640_300)
    totals = []
    for _ in range(30):
        days = DayPairs(ONLY)
        common = {hour: rng.normal(0, 0.03) for hour in range(2)}
        own = {
            (name, hour): rng.normal(0, 0.02) for name in ("c1", "c2", "c3") for hour in range(2)
        }
        for day in (0, 1):
            for minute in range(0, 120, 2):
                level = {
                    name: day * (common[minute // 60] + own[name, minute // 60])
                    for name in ("c1", "c2", "c3")
                }
                rows = [
                    instance(name, minute=day * 1440 + minute, p50=0.01 * math.exp(value))
                    for name, value in level.items()
                ]
                days.add(day * 1440 + minute, rows)
        totals.append(days.sums()["p50"])
    squares, explained, hours = (sum(total[place] for total in totals) for place in range(3))
    assert hours == 60
    assert math.sqrt((squares - explained) / hours) == pytest.approx(0.03, rel=0.25)
