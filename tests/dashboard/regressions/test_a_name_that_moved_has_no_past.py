"""A unit whose name moves to another node is not compared with the past of its old node, and errors
above the number of calls stop no evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dashboard.regressions.judge import InstanceMinute, judge
from tests.dashboard.regressions.fleets import ROW, every_minute, instance

HISTORY, MINUTES, CHANGED = 600, 150, 20


def fleet() -> Iterator[InstanceMinute]:
    """Pods m0 to m3 run on fast nodes until minute 20, then as candidates on usual nodes; the other
    four stay. The version changes nothing."""
    rng = np.random.default_rng(3)
    for minute in range(-HISTORY, MINUTES):
        for number in range(8):
            moved = number < 4 and minute >= CHANGED
            fast = number < 4 and not moved
            yield replace(
                ROW,
                instance=f"m{number}-{moved}",
                unit=f"m{number}",
                arm="candidate" if moved else "baseline",
                host=f"{'new' if moved else 'old'}{number}",
                minute=minute,
                first_minute=CHANGED if moved else -HISTORY - 10,
                p50=0.010 * (0.86 if fast else 1.0) * float(np.exp(rng.normal(0, 0.02))),
            )


def test_equal_versions_stay_equal_if_the_pods_move() -> None:
    outcome = judge(fleet(), now_minute=MINUTES, deployed_minute=0)
    row = next(row for row in outcome.evidence if row.metric == "p50")
    assert row.change is not None and abs(row.change) < 0.04
    assert row.label != "REGRESSED"


def test_more_errors_than_calls_are_evaluated() -> None:
    rows = [
        *every_minute([instance("b1"), instance("b2")], 60),
        *every_minute([instance("c1")], 30),
        *every_minute([instance("c1", errors=101)], 30, start=30),
    ]
    assert judge(rows, now_minute=60, deployed_minute=0).verdict == "roll_back"
