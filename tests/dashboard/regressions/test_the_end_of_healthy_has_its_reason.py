"""A version that is no longer HEALTHY states until when it was, and which check ended it."""

from __future__ import annotations

from dashboard.regressions.judge import Outcome, judge
from tests.dashboard.regressions.fleets import every_minute, instance
from tests.dashboard.regressions.test_a_verdict_is_one_sentence import sentence_of

BASE = [instance(f"b{i}") for i in range(6)]


def outcome_of(later: float, minutes: int) -> Outcome:
    """Two instances that are as fast as the baseline for an hour, and slower afterwards."""
    well = [*BASE, *(instance(f"c{i}") for i in range(2))]
    slow = [*BASE, *(instance(f"c{i}", p50=later) for i in range(2))]
    rows = [*every_minute(well, 60), *every_minute(slow, minutes - 60, start=60)]
    return judge(rows, now_minute=minutes, deployed_minute=0)


def test_the_check_that_ended_healthy_and_its_metric_are_named() -> None:
    outcome = outcome_of(0.01085, 181)
    assert [verdict for _, verdict in outcome.transitions] == [
        "not_enough_data",
        "healthy",
        "not_enough_data",
    ]
    assert sentence_of(outcome).startswith(
        "HEALTHY until 11:59; the check after 3 h did not confirm p50 call time. "
        "Not enough data on p50 call time: 5."
    )


def test_a_later_check_that_passes_ends_the_remark() -> None:
    outcome = outcome_of(0.010, 181)
    assert outcome.verdict == "healthy" and outcome.lost_healthy is None
    assert "until" not in sentence_of(outcome)


def test_a_version_that_was_never_healthy_has_no_remark() -> None:
    outcome = judge(
        every_minute([instance("b1"), instance("c1")], 50), now_minute=50, deployed_minute=0
    )
    assert outcome.verdict == "not_enough_data" and "HEALTHY" not in sentence_of(outcome)
