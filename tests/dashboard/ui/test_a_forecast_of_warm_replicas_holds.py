"""Forecasts for rollouts, simulated with start times that vary by 5% to 20% and recorded: the
forecast is close, and its range states the uncertainty."""

from __future__ import annotations

import gzip
import math
import random
from typing import NamedTuple

import pytest
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import COLD_START, Request

from dashboard.ui.pages.startup.rollout_forecast import forecast_rollout
from tests.architecture.tree import REPOSITORY

ROLL_OUTS = 150


@pytest.mark.parametrize("replicas", [8, 32])
@pytest.mark.parametrize(("spread", "near"), [(0.05, 0.97), (0.1, 0.85), (0.2, 0.6)])
@pytest.mark.parametrize("seen", [5, 30])
def test_the_forecast_is_within_20_percent_and_its_range_has_the_stated_coverage(
    seen: int, spread: float, near: float, replicas: int
) -> None:
    chance = random.Random(f"{seen} {spread} {replicas}")

    def starts(count: int) -> list[float]:
        return [40.0 * math.exp(chance.gauss(0.0, spread)) for _ in range(count)]

    within = inside = 0
    for _ in range(ROLL_OUTS):
        told, slowest = forecast_rollout("cold", starts(seen), replicas), max(starts(replicas))
        assert told.low is not None and told.middle is not None and told.high is not None
        within += abs(told.middle / slowest - 1.0) <= 0.2
        inside += told.low <= slowest <= told.high
    assert within >= near * ROLL_OUTS
    assert 0.68 * ROLL_OUTS <= inside <= 0.92 * ROLL_OUTS


def test_equal_starts_give_equal_forecasts() -> None:
    assert forecast_rollout("cold", [40.0, 41.0, 44.0], 10_000) == forecast_rollout(
        "cold", [40.0, 41.0, 44.0], 10_000
    )


class Start(NamedTuple):
    began: float
    total: float


def recorded(name: str) -> list[Start]:
    """The starts of a recorded rollout, in order."""
    with gzip.open(REPOSITORY / f"tests/data/rollouts/{name}.jsonl.gz") as file:
        reports = [report for line in file for report in loads(Request, line).reports]
    told = [
        fact.data
        for report in reports
        for fact in report.facts
        if fact.data.get("name") == COLD_START
    ]
    return sorted(Start(data["began"], data["total"]) for data in told)


@pytest.mark.parametrize(
    ("name", "at_once"), [("gpu-cold", 3), ("gpu-larger-cold", 3), ("gpu-warm", 4)]
)
def test_after_a_third_of_a_recorded_rollout_the_forecast_of_the_rest_is_within_20_percent(
    name: str, at_once: int
) -> None:
    starts = recorded(name)
    first, rest = starts[: len(starts) // 3], starts[len(starts) // 3 :]
    groups = [rest[at : at + at_once] for at in range(0, len(rest), at_once)]
    assert len(first) == at_once and all(max(one).began - min(one).began < 1.0 for one in groups)
    told = forecast_rollout("all", [one.total for one in first], len(rest), at_once)
    # The time of a group until its last replica is warm. The rollout decides when the next group
    # starts.
    came = sum(
        max(start.began + start.total for start in group) - group[0].began for group in groups
    )
    assert told.middle is not None and abs(told.middle / came - 1.0) <= 0.2


def test_sequential_groups_take_the_sum_of_their_slowest_starts() -> None:
    seen = [40.0, 40.0, 40.0, 40.0]
    one, three = (
        forecast_rollout("cold", seen, 4).middle,
        forecast_rollout("cold", seen, 12, 4).middle,
    )
    assert one is not None and three is not None and three == pytest.approx(3 * one, rel=0.02)
    many = forecast_rollout("cold", seen, 4000, 4).middle
    assert many is not None and many == pytest.approx(1000 * one, rel=0.02)
