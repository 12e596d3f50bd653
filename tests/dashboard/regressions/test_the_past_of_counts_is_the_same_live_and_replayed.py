"""Counts of the baseline before the deployment count in a live comparison as in a replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dashboard.regressions.judge import Comparison, InstanceMinute, evaluate_comparison, judge
from tests.dashboard.regressions.fleets import instance


def rows_of(minute: int) -> Iterator[InstanceMinute]:
    """Half of the baseline's calls are eager until the deployment, then half of the candidate's."""
    for name in ("b1", "b2", "c1"):
        old = name != "c1"
        if old or minute >= 0:
            eager = 50 if old == (minute < 0) else 0
            row = instance(name, compiled=100 - eager, eager=eager)
            yield replace(row, minute=minute, first_minute=-60, eager_by={"limit": eager})


def test_a_live_comparison_and_a_replay_give_the_same_history() -> None:
    live = Comparison(0)
    for minute in range(-10, 40):
        live.add_minute(minute, list(rows_of(minute)))
    rows = [row for minute in range(-10, 40) for row in rows_of(minute)]
    replayed = judge(rows, now_minute=40, deployed_minute=0)
    assert evaluate_comparison(live, now_minute=40).transitions == replayed.transitions
