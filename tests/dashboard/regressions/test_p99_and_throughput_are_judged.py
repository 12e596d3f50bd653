"""p99 and throughput in addition to p50: found alone, explained by p50 if they follow it, and no
delay of HEALTHY if absent."""

import json

import pytest

from dashboard.regressions.judge import Comparison, Outcome, evaluate_comparison, judge
from dashboard.regressions.judge.call_metrics import STRETCH, stretch_tail
from dashboard.regressions.judge.result import Evidence
from dashboard.regressions.judge.text.verdict import verdict_sentence
from tests.bench.fleet_sim import Fleet, instance_minutes
from tests.dashboard.regressions.fleets import every_minute, instance

WHOLE = {"p50": 0.010, "p99": 0.020, "items": 1600.0, "latency_sum": 1.1}


def fleet(baseline: dict | None = None, instances: int = 6, **candidate: object) -> list:
    base = [instance(f"b{i}", **{**WHOLE, **(baseline or {})}) for i in range(instances)]
    return base + [instance(f"c{i}", **{**WHOLE, **candidate}) for i in range(instances)]


def judged(rows: list, minutes: int = 60) -> Outcome:
    return judge(list(every_minute(rows, minutes)), now_minute=minutes, deployed_minute=0)


def rows_of(outcome: Outcome) -> dict[str, Evidence]:
    return {row.metric: row for row in outcome.evidence}


def watched(fleet: Fleet) -> Outcome:
    comparison = Comparison(0)
    for minute, rows in enumerate(instance_minutes(fleet)):
        comparison.add_minute(minute, rows)
    return evaluate_comparison(comparison, now_minute=fleet.minutes)


def drivers(outcome: Outcome) -> set[str]:
    return {row.metric for row in outcome.evidence if row.drives}


def test_a_slower_tail_alone_is_found_on_simulated_fleets():
    found = [
        watched(Fleet(seed=86_000 + seed, candidates=2, minutes=240, fault="tail", size=0.3))
        for seed in range(5)
    ]
    assert (
        sum(outcome.verdict == "roll_back" and drivers(outcome) == {"p99"} for outcome in found)
        >= 4
    )


def test_fewer_items_in_the_same_time_are_found_on_simulated_fleets():
    found = [
        watched(Fleet(seed=87_000 + seed, candidates=2, minutes=240, fault="batches", size=0.3))
        for seed in range(5)
    ]
    assert all(
        outcome.verdict == "roll_back" and drivers(outcome) == {"throughput"} for outcome in found
    )


def test_failing_calls_are_found_on_simulated_fleets():
    found = [
        watched(Fleet(seed=88_000 + seed, candidates=2, minutes=400, fault="error", size=20.0))
        for seed in range(5)
    ]
    assert (
        sum(outcome.verdict == "roll_back" and drivers(outcome) == {"errors"} for outcome in found)
        >= 4
    )


def test_throughput_is_items_over_call_time_and_less_is_worse():
    row = rows_of(judged(fleet(items=1200.0)))["throughput"]
    assert (row.baseline, row.candidate) == (pytest.approx(1600 / 1.1), pytest.approx(1200 / 1.1))
    assert (row.change, row.worse, row.label) == (pytest.approx(1 / 3), -1, "REGRESSED")


def test_a_rise_no_larger_than_that_of_p50_is_explained_by_p50():
    outcome = judged(fleet(p50=0.013, p99=0.0262, latency_sum=1.43))
    rows = rows_of(outcome)
    assert (rows["p99"].label, rows["p99"].explained_by, rows["throughput"].explained_by) == (
        "REGRESSED",
        "p50",
        "p50",
    )
    assert drivers(outcome) == {"p50"}


def test_a_tail_that_rises_far_more_than_p50_is_a_separate_cause():
    outcome = judged(fleet(p50=0.013, p99=0.040, latency_sum=1.43))
    assert (rows_of(outcome)["p99"].explained_by, drivers(outcome)) == ("", {"p50", "p99"})


def test_eager_calls_explain_the_slowness_that_they_cause():
    rows = rows_of(
        judged(
            fleet(
                p50=0.013,
                p99=0.026,
                latency_sum=1.43,
                compiled=70,
                eager=30,
                eager_by={"limit": 30},
            )
        )
    )
    assert {name: row.explained_by for name, row in rows.items()} == {
        "p50": "eager",
        "p99": "p50",
        "throughput": "p50",
        "errors": "",
        "eager": "",
    }


def test_an_unreported_metric_is_not_in_the_evidence_and_does_not_delay_healthy():
    absent = {"p99": None, "items": None}
    outcome = judged(fleet(baseline=absent, **absent))
    assert (outcome.verdict, set(rows_of(outcome))) == ("healthy", {"p50", "errors", "eager"})


def test_a_metric_that_only_the_new_version_reports_is_named_and_does_not_delay_healthy():
    outcome = judged(fleet(baseline={"items": None}))
    row = rows_of(outcome)["throughput"]
    assert (outcome.verdict, row.label, row.reason) == ("healthy", "NOT ENOUGH DATA", "one_sided")


def test_a_metric_that_the_new_version_no_longer_reports_delays_healthy():
    outcome = judged(fleet(items=None))
    row = rows_of(outcome)["throughput"]
    assert (outcome.verdict, row.label, row.reason) == (
        "not_enough_data",
        "NOT ENOUGH DATA",
        "one_sided",
    )


def test_a_p99_of_few_calls_a_minute_is_not_evaluated_and_reported_as_such():
    outcome = judged(
        [instance(row.instance, p50=0.010, p99=0.020, calls=10) for row in fleet()], minutes=70
    )
    row = rows_of(outcome)["p99"]
    assert (outcome.verdict, row.label, row.reason) == (
        "healthy",
        "NOT ENOUGH DATA",
        "too_few_calls",
    )


def test_a_quieter_version_is_not_slower_at_its_tail():
    """The p99 of 30 calls is the slowest call; the p99 of 900 calls is far out. The same spread has
    to give the same value."""
    spread = 0.4
    few = 0.010 * 2.718281828 ** (spread * 2.3263478740408408 / STRETCH[30])
    many = 0.010 * 2.718281828 ** (spread * 2.3263478740408408 / STRETCH[900])
    assert few < many
    assert stretch_tail(0.010, few, 30) == pytest.approx(stretch_tail(0.010, many, 900))


def test_gpu_p99_stands_in_for_call_time_if_calls_return_early():
    device = {"p50": 0.001, "p99": 0.002, "gpu_p50": 0.010, "gpu_p99": 0.020, "gpu_count": 50}
    outcome = judged(fleet(baseline=device, **{**device, "gpu_p99": 0.030, "items": 400.0}))
    rows = rows_of(outcome)
    assert {name: row.judged for name, row in rows.items()} == {
        "p50": False,
        "gpu_p50": True,
        "p99": False,
        "gpu_p99": True,
        "throughput": False,
        "errors": True,
        "eager": True,
    }
    assert drivers(outcome) == {"gpu_p99"}


@pytest.mark.parametrize("metric", ["p99", "throughput"])
def test_roll_back_ends_when_the_last_half_hour_has_recovered(metric: str):
    fault = {"p99": 0.060} if metric == "p99" else {"items": 800.0}
    rows = [*every_minute(fleet(**fault), 60), *every_minute(fleet(), 31, start=60)]
    assert drivers(judge(rows[: 60 * 12], now_minute=60, deployed_minute=0)) == {metric}
    assert judge(rows, now_minute=91, deployed_minute=0).verdict == "watch"


@pytest.mark.parametrize(
    "strange",
    [{"items": 0.0}, {"latency_sum": 0.0}, {"items": float("inf")}, {"p99": 1e308, "p50": 1e-308}],
)
def test_extreme_values_get_a_result(strange: dict):
    outcome = judged(fleet(**strange))
    assert outcome.verdict == "not_enough_data"


@pytest.mark.parametrize("most, least", [(1e15, 1e-310), (1e-310, 1e15)])
def test_a_change_beyond_the_range_of_floats_is_still_reported(most: float, least: float):
    """Ingest accepts both numbers of items; an exception in the judge would keep the last verdict
    indefinitely."""
    outcome = judged(fleet(baseline={"items": most}, items=least))
    assert rows_of(outcome)["throughput"].label == ("REGRESSED" if most > least else "IMPROVED")
    assert "throughput" in verdict_sentence(outcome, candidate="v2", baseline="v1", say_minute=str)
    json.dumps(outcome.as_dict(), allow_nan=False)
