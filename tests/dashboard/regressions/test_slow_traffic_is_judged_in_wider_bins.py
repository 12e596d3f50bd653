"""Bins: the shortest of 1, 5, 15 and 60 minutes with 20 calls, and never a verdict from a single
bin."""

import pytest

from dashboard.regressions.judge import judge
from tests.dashboard.regressions.fleets import every_minute, instance


def p50_of(calls: int, minutes: int, slower: float = 2.0):
    rows = list(
        every_minute(
            [
                instance("b1", calls=calls),
                instance("b2", calls=calls),
                instance("c1", calls=calls, p50=0.010 * slower),
            ],
            minutes,
        )
    )
    outcome = judge(rows, now_minute=minutes, deployed_minute=0)
    return outcome, next(row for row in outcome.evidence if row.metric == "p50")


@pytest.mark.parametrize(
    ("calls", "minutes", "matched"), [(20, 21, 21), (5, 60, 55), (2, 120, 100), (1, 240, 180)]
)
def test_fewer_calls_need_longer_bins(calls: int, minutes: int, matched: int):
    _, row = p50_of(calls, minutes)
    assert row.matched_minutes >= matched
    assert row.change == pytest.approx(1.0)


def test_a_verdict_needs_two_wide_bins():
    outcome, row = p50_of(calls=1, minutes=70)
    assert (row.label, outcome.verdict) == ("REGRESSED", "watch")
    outcome, _ = p50_of(calls=1, minutes=200)
    assert outcome.verdict == "roll_back"


def test_a_quiet_canary_is_matched_with_a_busy_baseline():
    rows = list(every_minute([instance("b1", calls=500), instance("c1", calls=5, p50=0.02)], 90))
    row = next(
        row for row in judge(rows, now_minute=90, deployed_minute=0).evidence if row.metric == "p50"
    )
    assert row.matched_minutes >= 80
    assert row.change == pytest.approx(1.0)
