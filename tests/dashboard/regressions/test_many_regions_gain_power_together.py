"""A change of a few percent in each of many regions is found over all regions, and never holds back
HEALTHY."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dashboard.regressions.judge import InstanceMinute, judge
from tests.dashboard.regressions.fleets import ROW

REGIONS = [f"layer{number:02}" for number in range(12)]
MINUTES = 120


def fleet(change: float) -> Iterator[InstanceMinute]:
    """Three instances of each version. Every region of an instance has a level of its own."""
    rng = np.random.default_rng(11)
    levels = {
        (unit, region): float(rng.normal(0, 0.05))
        for unit in ("b1", "b2", "b3", "c1", "c2", "c3")
        for region in REGIONS
    }
    for minute in range(MINUTES):
        for (unit, region), level in levels.items():
            new = unit.startswith("c")
            yield replace(
                ROW,
                instance=unit,
                unit=unit,
                arm="candidate" if new else "baseline",
                region=region,
                minute=minute,
                p50=0.010
                * (1.0 + change if new else 1.0)
                * float(np.exp(level + rng.normal(0, 0.01))),
            )


def test_all_regions_together_are_slower() -> None:
    outcome = judge(fleet(0.22), now_minute=MINUTES, deployed_minute=0)
    driving = [row for row in outcome.evidence if row.drives]
    assert outcome.verdict in ("watch", "roll_back")
    pooled = [row for row in driving if row.region == "" and row.metric == "p50"]
    assert len(pooled) == 1
    assert pooled[0].change is not None and 0.14 < pooled[0].change < 0.30


def test_equal_versions_have_no_row_over_all_regions() -> None:
    outcome = judge(fleet(0.0), now_minute=MINUTES, deployed_minute=0)
    assert not [row for row in outcome.evidence if row.metric == "p50" and row.region == ""]
    assert outcome.verdict in ("healthy", "not_enough_data")
