"""An improvement is a sentence with its size, while HEALTHY and while NOT ENOUGH DATA."""

from __future__ import annotations

from dataclasses import replace

from tests.dashboard.regressions.fleets import instance
from tests.dashboard.regressions.test_a_verdict_is_one_sentence import judged, sentence_of

BASE = [instance(f"b{i}", p50=0.010) for i in range(6)]


def faster(count: int, **changes: object) -> list:
    return [*BASE, *(instance(f"c{i}", p50=0.008, **changes) for i in range(count))]


def test_healthy_states_the_improvement_before_the_ruled_out_regression() -> None:
    outcome = judged(faster(6))
    (p50,) = (row for row in outcome.evidence if row.metric == "p50")
    assert (outcome.verdict, p50.label) == ("healthy", "IMPROVED")
    low, high = (round(-end * 100) for end in (p50.high, p50.low))
    assert sentence_of(outcome) == (
        f"p50 call time is 20% faster ({low}% to {high}%) than 2026.11.2, 8 ms instead of 10 ms. "
        "No regression in 1 h compared with 2026.11.2."
    )


def test_not_enough_data_states_the_improvement_too() -> None:
    outcome = judged(faster(6), 40)
    assert outcome.verdict == "not_enough_data"
    sentence = sentence_of(outcome)
    assert sentence.startswith("Next check at 10:00. p50 call time is 20% faster (")
    assert sentence.count("20% faster") == 1


def test_an_improvement_that_waits_for_a_later_check_is_stated_once() -> None:
    outcome = replace(judged(faster(6), 40), reason="not_within_bound")
    sentence = sentence_of(outcome)
    assert sentence.startswith("p50 call time is 20% faster (")
    assert sentence.count("20% faster") == 1 and sentence.endswith("Next check at 10:00.")


def test_higher_throughput_is_an_improvement_in_its_own_direction() -> None:
    whole = {"items": 16000.0, "latency_sum": 11.0, "calls": 1000}
    rows = [instance(f"b{i}", **whole) for i in range(6)]
    rows += [instance(f"c{i}", **{**whole, "items": 20000.0}) for i in range(6)]
    assert sentence_of(judged(rows)).startswith("Throughput is 25% higher (")


def test_nothing_is_called_better_while_another_metric_is_worse() -> None:
    sentence = sentence_of(judged(faster(6, errors=40)))
    assert sentence.startswith("Roll back 2026.11.3: ") and "faster" not in sentence


def test_a_change_within_the_error_is_no_improvement() -> None:
    rows = [*BASE, *(instance(f"c{i}", p50=0.0097) for i in range(6))]
    assert sentence_of(judged(rows)).startswith("No regression above ")
