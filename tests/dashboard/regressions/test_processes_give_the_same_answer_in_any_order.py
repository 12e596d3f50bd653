"""Properties of the evaluation of processes: no input crashes, order within a minute is irrelevant,
and late data gives the same result."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge import (
    Comparison,
    InstanceProcessMinute,
    InstanceStart,
    evaluate_comparison,
    judge,
)
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Comparison as Kept
from dashboard.regressions.models import Verdict
from tests.bench.fleet_sim import Fleet, instance_minutes
from tests.bench.process_sim import instance_states

SECONDS = st.none() | st.floats(min_value=0.0, max_value=1e6)
NAMES = st.sampled_from(["a", "b", "c"])
BYTES = st.none() | st.integers(0, 1 << 40)
STARTS = st.builds(
    InstanceStart,
    compile_time=SECONDS,
    cold_start=SECONDS,
    cold_start_minute=st.integers(0, 90),
    hits=st.integers(0, 9),
    misses=st.integers(0, 9),
    hit_seconds=st.floats(0.0, 100.0),
    miss_seconds=st.floats(0.0, 100.0),
)
STATES = st.builds(
    InstanceProcessMinute,
    instance=NAMES,
    unit=NAMES,
    arm=st.sampled_from(["baseline", "candidate"]),
    stratum=st.sampled_from([("H100",), ("A100",)]),
    minute=st.integers(0, 90),
    first_minute=st.integers(-200, 100),
    gpu_peak=BYTES,
    host_rss=BYTES,
    recompiles=st.integers(0, 20),
    ooms=st.integers(0, 2),
    start=st.none() | STARTS,
)


@settings(max_examples=100, deadline=None)
@given(states=st.lists(STATES, max_size=60), seed=st.integers(0, 1000))
def test_any_states_get_an_answer_that_does_not_depend_on_their_order(
    states: list[InstanceProcessMinute], seed: int
):
    calls = [row for minute in instance_minutes(Fleet(seed=1, minutes=20)) for row in minute]
    outcome = judge(calls, now_minute=91, deployed_minute=0, states=states).as_dict()
    json.dumps(outcome, allow_nan=False)
    shuffled = list(states)
    random.Random(seed).shuffle(shuffled)
    assert judge(calls, now_minute=91, deployed_minute=0, states=shuffled).as_dict() == outcome


def test_a_whole_fleet_gives_the_same_bits_in_any_order():
    fleet = Fleet(seed=77, minutes=240, candidates=2, fault="leak", size=0.03)
    live = Comparison(0, with_past=True)
    calls, states = list(instance_minutes(fleet)), list(instance_states(fleet))
    for minute, rows in enumerate(calls):
        live.add_minute(
            minute, rows, random.Random(minute).sample(states[minute], len(states[minute]))
        )
    every_call, every_state = [
        [row for minute in kind for row in minute] for kind in (calls, states)
    ]
    assert judge(
        every_call, now_minute=240, deployed_minute=0, states=every_state
    ) == evaluate_comparison(live, now_minute=240)


def memory() -> dict[str, Any]:
    evidence = Verdict.objects.get(current=True, deployment__version__name="2026.11.3").evidence[
        "evidence"
    ]
    return next(row for row in evidence if row["metric"] == "gpu_memory")


@pytest.mark.django_db
def test_late_minutes_of_a_process_give_the_same_result(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
):
    late = side_by_side[-1]
    for instance in side_by_side[:-1]:
        send(instance)
    send(late, last=10)
    send(late, first=25)
    deployments_judge()
    incomplete = memory()
    send(late, first=11, last=24)
    deployments_judge()
    in_the_end = memory()
    assert (
        sum(dot["n"] for dot in in_the_end["dots"])
        == sum(dot["n"] for dot in incomplete["dots"]) + 14
    )
    clear_comparisons()
    Kept.objects.all().delete()
    deployments_judge()
    assert memory() == in_the_end


@pytest.mark.django_db
def test_starts_and_memory_are_read_from_reports_of_agents(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
):
    for instance in side_by_side:
        send(instance)
    deployments_judge()
    rows = Verdict.objects.get(current=True, deployment__version__name="2026.11.3").evidence[
        "evidence"
    ]
    found = {row["metric"]: row for row in rows if not row["region"]}
    assert found["gpu_memory"]["baseline"] == pytest.approx(30.4 * (1 << 30), rel=0.01)
    assert found["compile_time"]["candidate"] == pytest.approx(33.0, rel=0.1)
    assert found["cold_start"]["candidate"] == pytest.approx(33.0 + 9.0, rel=0.1)
    assert found["cold_start"]["baseline"] == pytest.approx(30.0 + 9.0, rel=0.1)
    assert {row["candidate_instances"] for row in found.values()} == {3}
