"""A share of calls is shown with the counts behind it, in sentences and in alert texts."""

from __future__ import annotations

import pytest

from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.regressions.judge import Evidence, Outcome
from tests.dashboard.regressions.fleets import instance
from tests.dashboard.regressions.test_a_verdict_is_one_sentence import judged, sentence_of

BASE = [instance(f"b{i}") for i in range(6)]


def row_of(outcome: Outcome, metric: str) -> Evidence:
    return next(row for row in outcome.evidence if row.metric == metric)


@pytest.mark.parametrize(
    ("changes", "metric", "words"),
    [
        ({"compiled": 90, "eager": 10}, "eager", "run eager"),
        ({"errors": 10}, "errors", "fail"),
        (
            {"stalled": 10, "stalled_sum": 5.0, "call_seconds": 6.0},
            "stalled",
            "wait for a compilation",
        ),
    ],
)
def test_the_events_and_calls_of_both_versions_are_counted(
    changes: dict[str, object], metric: str, words: str
) -> None:
    none = {"stalled": 0, "stalled_sum": 0.0, "call_seconds": 1.0}
    rows = [instance(f"b{i}", **none) for i in range(6)]
    rows += [instance("c1", **none), instance("c2", **{**none, **changes})]
    outcome = judged(rows)
    row = row_of(outcome, metric)
    assert (row.candidate_events, row.candidate_calls) == (150, 3000)
    assert (row.baseline_events, row.baseline_calls) == (0, 9000)
    assert f"150 of 3,000 calls (5%) {words} on 1 of 2 instances" in sentence_of(outcome)
    assert "none of 9,000 on 2026.11.2" in sentence_of(outcome)
    (line,) = (
        line
        for line in select_strongest_evidence(outcome.as_dict(), limit=9)
        if line["metric"] == metric
    )
    assert line["text"].replace("\u00a0", " ") == (
        "150 of 3,000 calls (5%), before: 0 of 9,000 (0%), last 15 min; 1 of 2 instances"
    )


def test_a_rate_has_the_counts_since_the_deployment() -> None:
    rows = [instance(f"b{i}", errors=2) for i in range(6)]
    outcome = judged([*rows, *(instance(f"c{i}", errors=10) for i in range(6))])
    row = row_of(outcome, "errors")
    assert (row.rule, row.candidate_events, row.candidate_calls) == ("rate", 3600, 36000)
    assert "3,600 of 36,000 calls (10%) fail" in sentence_of(outcome)
    assert "720 of 36,000 (2%) on 2026.11.2" in sentence_of(outcome)


def test_a_share_of_time_has_no_counts() -> None:
    part = {"stalled": 1, "stalled_sum": 60.0, "call_seconds": 61.0}
    none = {"stalled": 0, "stalled_sum": 0.0, "call_seconds": 1.0}
    rows = [instance(f"b{i}", **none) for i in range(6)]
    outcome = judged([*rows, *(instance(f"c{i}", **part) for i in range(6))])
    assert row_of(outcome, "stalled_time").candidate_calls is None


def test_a_weighted_share_is_not_shown_with_counts_of_another_one() -> None:
    """The baseline's rate is weighted by the candidate's strata: 10% on the stratum that the
    candidate uses most, 0% on the other."""
    rows = [instance(f"b{i}", stratum="A100", errors=10, calls=100) for i in range(3)]
    rows += [instance(f"b1{i}", stratum="H100", calls=900) for i in range(3)]
    rows += [instance(f"c{i}", stratum="A100", errors=400, calls=900) for i in range(3)]
    rows += [instance(f"c1{i}", stratum="H100", calls=100) for i in range(3)]
    outcome = judged(rows)
    row = row_of(outcome, "errors")
    assert row.baseline == pytest.approx(0.09) and row.baseline_events / row.baseline_calls == 0.01
    assert ", 9% on 2026.11.2" in sentence_of(outcome)
