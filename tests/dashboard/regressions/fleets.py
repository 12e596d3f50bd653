"""Handmade rows for the judge, and the settings of a fleet with learned variance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from dashboard.regressions.judge import InstanceMinute
from dashboard.regressions.judge.settings_overrides import (
    ENOUGH_PAIRS,
    LearnedMetric,
    build_settings,
)

# Variance between healthy simulated instances by number of matched minutes, as the reference
# procedure learned it on its simulated fleet.
LEARNED_VARIANCE = (
    (10, 0.00270),
    (20, 0.00289),
    (30, 0.00268),
    (45, 0.00243),
    (60, 0.00228),
    (90, 0.00201),
    (120, 0.00192),
    (180, 0.00169),
    (240, 0.00155),
    (480, 0.00147),
    (1400, 0.00142),
)
LEARNED_TAIL = (
    (10, 0.00462),
    (20, 0.00429),
    (30, 0.00367),
    (45, 0.00314),
    (60, 0.00288),
    (90, 0.00239),
    (120, 0.00227),
    (180, 0.00191),
    (240, 0.00173),
    (480, 0.00154),
    (1400, 0.00147),
)
LEARNED_DAYS = 3.6e-5
"""Day-to-day variance: the common change of all hosts of that simulated fleet between two days."""
LEARNED_CACHES = 0.39
"""Dispersion of cache misses at instance starts beyond chance, as this judge learned it from 200
simulated healthy pairs (`Lesson` over 41 minutes of `Fleet(candidates=2)`, seeds 3800000 to
3800199); the reference procedure learned 0.37 on its own."""
TAUGHT = {
    "p50": LearnedMetric(ENOUGH_PAIRS, LEARNED_VARIANCE, LEARNED_DAYS),
    "p99": LearnedMetric(ENOUGH_PAIRS, LEARNED_TAIL, LEARNED_DAYS),
    "throughput": LearnedMetric(ENOUGH_PAIRS, (), LEARNED_DAYS),
    "cache": LearnedMetric(ENOUGH_PAIRS, (), None, LEARNED_CACHES),
}
LEARNED = build_settings({}, TAUGHT)

ROW = InstanceMinute(
    instance="b1",
    unit="b1",
    arm="baseline",
    stratum="H100",
    region="forward",
    bucket="2^12",
    minute=0,
    first_minute=-60,
    calls=100,
    compiled=100,
    p50=0.010,
)


def instance(name: str, **changes: Any) -> InstanceMinute:
    """One instance in its first shown minute; names that begin with c are candidates."""
    arm = "candidate" if name.startswith("c") else "baseline"
    if "calls" in changes and "eager" not in changes:
        changes.setdefault("compiled", changes["calls"])
    return replace(ROW, **{"instance": name, "unit": name, "arm": arm, **changes})


def every_minute(
    rows: Iterable[InstanceMinute], minutes: int, start: int = 0
) -> Iterator[InstanceMinute]:
    """The same rows in every minute."""
    kept = list(rows)
    for minute in range(start, start + minutes):
        yield from (replace(row, minute=minute) for row in kept)
