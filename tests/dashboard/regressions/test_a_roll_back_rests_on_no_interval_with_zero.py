"""A ROLL BACK sentence shows no interval that contains zero."""

from __future__ import annotations

from dataclasses import replace

from dashboard.alerts.alert_title import build_alert_title
from dashboard.regressions.judge import Evidence, Outcome
from tests.dashboard.regressions.fleets import instance
from tests.dashboard.regressions.test_a_verdict_is_one_sentence import judged, sentence_of


def slow_and_eager() -> Outcome:
    rows = [instance(f"b{i}") for i in range(6)]
    return judged(
        [*rows, *(instance(f"c{i}", p50=0.0131, compiled=72, eager=28) for i in range(6))]
    )


def uncertain(outcome: Outcome, *metrics: str) -> Outcome:
    """The outcome after the rows of these metrics have become uncertain."""

    def widened(row: Evidence) -> Evidence:
        if row.metric not in metrics:
            return row
        return replace(row, label="NOT ENOUGH DATA", reason="too_wide", low=-0.02)

    return replace(outcome, evidence=tuple(map(widened, outcome.evidence)))


def test_a_level_that_is_uncertain_now_is_left_to_the_evidence() -> None:
    outcome = uncertain(slow_and_eager(), "p50")
    sentence = sentence_of(outcome)
    assert sentence.startswith("Roll back 2026.11.3: 2,520 of 9,000 calls (28%) run eager on all 6")
    assert "p50" not in sentence and "−2%" not in sentence
    title = build_alert_title(
        model="ranker", version="3", sentence=sentence, evidence=outcome.as_dict()
    )
    assert title == "ranker 3: 28% of calls run eager"


def test_without_any_certain_row_the_lack_of_recovery_is_the_reason() -> None:
    rows = [instance(f"b{i}") for i in range(6)]
    outcome = judged([*rows, *(instance(f"c{i}", p50=0.0131) for i in range(6))])
    sentence = sentence_of(uncertain(outcome, "p50"))
    assert sentence == (
        "Roll back 2026.11.3: p50 call time is 31% slower than 2026.11.2, 13.1 ms instead of "
        "10 ms, on all 6 instances since the deployment; the last half hour shows no recovery."
    )
