"""The matched log ratio, its variance and its interval on a case that is small enough to compute by
hand."""

from itertools import pairwise
from math import exp, log, sqrt

import pytest
from scipy.stats import t

from dashboard.regressions.judge import PRODUCTION, judge
from dashboard.regressions.judge.error_budget import find_tail
from dashboard.regressions.judge.level_reading import WHOLE_SHARE
from dashboard.regressions.judge.pooled_estimate import t_quantile
from dashboard.regressions.judge.settings import P50, AnyMetric, RatioMetric
from tests.dashboard.regressions.fleets import every_minute, instance


def prior_by_hand(metric: RatioMetric, minutes: int) -> float:
    """The prior variance after these matched minutes, on the line between two rows of its table."""
    return next(
        (before * (end - minutes) + after * (minutes - start)) / (end - start)
        for (start, before), (end, after) in pairwise(metric.prior_variance)
        if start <= minutes <= end
    )


def rate_by_hand(metric: AnyMetric) -> float:
    """The false-positive rate of one metric: its share of the weights of all metrics that can raise
    ROLL BACK. GPU time replaces call time, so it has no weight of its own."""
    weights = [each.weight for each in PRODUCTION.process_metrics if each.hard]
    for each in PRODUCTION.metrics:
        if each.hard and not (isinstance(each, RatioMetric) and each.instead_of):
            weights.append(each.weight)
    return PRODUCTION.roll_back_alpha * metric.weight / sum(weights)


def tail_by_hand(metric: RatioMetric) -> float:
    """The tail of the test of the time since the deployment, for a level in one region."""
    growth = metric.prior_variance[0][1] / metric.prior_variance[-1][1]
    return find_tail(WHOLE_SHARE * rate_by_hand(metric), growth)


SHARES = {"small": 300, "large": 100}


def two_against_one(small: float = 0.0126, large: float = 0.0252) -> list:
    rows = []
    for name, levels in {"b1": (0.010, 0.020), "b2": (0.011, 0.022), "c1": (small, large)}.items():
        for (bucket, calls), p50 in zip(SHARES.items(), levels, strict=True):
            rows.append(instance(name, bucket=bucket, calls=calls, p50=p50))
    return list(every_minute(rows, 30))


def row_of(rows: list) -> object:
    outcome = judge(rows, now_minute=30, deployed_minute=0)
    return next(row for row in outcome.evidence if row.metric == "p50")


def test_change_interval_and_values_match_the_formula():
    row = row_of(two_against_one())
    half = log(1.1) / 2
    delta = log(0.0126) - (log(0.010) + log(0.011)) / 2
    df = P50.prior_df + 1
    variance = (P50.prior_df * prior_by_hand(P50, 30) + 2 * half**2) / df
    error = sqrt(variance * (1 / 1 + 1 / 2))
    margin = t.ppf(1 - tail_by_hand(P50), df) * error
    assert row.change == pytest.approx(exp(delta) - 1)
    assert row.low == pytest.approx(exp(delta - margin) - 1)
    assert row.high == pytest.approx(exp(delta + margin) - 1)
    assert row.smallest_visible == pytest.approx(exp(margin) - 1)
    assert row.bound == pytest.approx(exp(delta + t.ppf(0.95, df) * error) - 1)
    assert row.baseline == pytest.approx(sqrt(0.010 * 0.011) ** 0.75 * sqrt(0.020 * 0.022) ** 0.25)
    assert row.candidate == pytest.approx(row.baseline * exp(delta))
    assert (
        row.baseline_instances,
        row.candidate_instances,
        row.affected_instances,
        row.matched_minutes,
    ) == (2, 1, 1, 30)


def test_buckets_are_weighted_by_the_baselines_traffic():
    # So small that no single bucket is shown instead of both.
    row = row_of(two_against_one(small=0.0105, large=0.0231))
    small = log(0.0105) - (log(0.010) + log(0.011)) / 2
    large = log(0.0231) - (log(0.020) + log(0.022)) / 2
    assert row.change == pytest.approx(exp(0.75 * small + 0.25 * large) - 1)


def test_strata_are_weighted_by_their_information():
    rows = [instance(name, stratum="H100") for name in ("b1", "b2", "b3")] + [
        instance("c1", stratum="H100", p50=0.012)
    ]
    rows += [instance("b4", stratum="A100", p50=0.020), instance("c2", stratum="A100", p50=0.021)]
    row = row_of(list(every_minute(rows, 30)))
    first, second = 1 + 1 / 3, 1 + 1
    delta = (log(1.2) / first + log(1.05) / second) / (1 / first + 1 / second)
    assert row.change == pytest.approx(exp(delta) - 1)
    assert [(part.stratum, round(part.change, 6)) for part in row.strata] == [
        ("A100", 0.05),
        ("H100", 0.2),
    ]
    assert row.strata_agreeing == 2


@pytest.mark.parametrize("df", [15, 16, 40, 400])
@pytest.mark.parametrize("tail", [1e-5, 1e-4, 1e-3, 0.05])
def test_quantiles_match_the_t_distribution(df: int, tail: float):
    assert t_quantile(df, tail) == pytest.approx(t.ppf(1 - tail, df), rel=1e-9)
