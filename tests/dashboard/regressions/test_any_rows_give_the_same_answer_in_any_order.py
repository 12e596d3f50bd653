"""Properties: no input crashes the judge, the order of rows within a minute is irrelevant, and
replay equals live evaluation."""

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.regressions.judge import (
    Comparison,
    InstanceMinute,
    Settings,
    evaluate_comparison,
    judge,
)
from tests.bench.fleet_sim import Fleet, instance_minutes

DURATIONS = st.none() | st.floats(min_value=0.0, max_value=1e6) | st.just(float("inf"))
HASTY = Settings(past_minutes=2, gone_minutes=1, instance_minutes=1)
NAMES = st.sampled_from(["a", "b", "c"])


@st.composite
def instance_minute(draw: st.DrawFn) -> InstanceMinute:
    calls = draw(st.integers(0, 200))
    eager = draw(st.integers(0, calls))
    return InstanceMinute(
        instance=draw(NAMES),
        unit=draw(NAMES),
        arm=draw(st.sampled_from(["baseline", "candidate"])),
        stratum=draw(st.sampled_from(["H100", ("A100", "default"), ("A100", "max-autotune")])),
        region=draw(st.sampled_from(["forward", "encode"])),
        bucket=draw(st.sampled_from(["", "2^12"])),
        minute=draw(st.integers(-60, 90)),
        first_minute=draw(st.integers(-100, 100)),
        calls=calls,
        eager=eager,
        eager_by={"limit": eager} if eager else {},
        errors=draw(st.integers(0, calls)),
        p50=draw(DURATIONS),
        p99=draw(DURATIONS),
        gpu_p50=draw(DURATIONS),
        gpu_p99=draw(DURATIONS),
        gpu_count=draw(st.integers(0, 50)),
        outermost=draw(st.booleans()),
        items=draw(st.none() | st.floats(min_value=0.0, max_value=1e9)),
        latency_sum=draw(st.floats(min_value=0.0, max_value=1e6)),
        host=draw(st.sampled_from(["", "x", "y"])),
    )


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(instance_minute(), max_size=80), seed=st.integers(0, 1000))
def test_any_rows_get_an_answer_that_does_not_depend_on_their_order(
    rows: list[InstanceMinute], seed: int
):
    outcome = judge(rows, now_minute=91, deployed_minute=0, settings=HASTY).as_dict()
    json.dumps(outcome, allow_nan=False)
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    assert judge(shuffled, now_minute=91, deployed_minute=0, settings=HASTY).as_dict() == outcome
    if not any(row.arm == "baseline" for row in rows):
        assert outcome["verdict"] == "not_enough_data"


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000), sequential=st.booleans())
def test_a_whole_fleet_gives_the_same_bits_in_any_order(seed: int, sequential: bool):
    history = 200 if sequential else 0
    fleet = Fleet(
        seed=seed,
        minutes=90,
        candidates=2,
        fault="eager",
        size=0.4,
        sequential=sequential,
        history=history,
        stagger=5,
    )
    rows = [row for minute in instance_minutes(fleet, -history) for row in minute]
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    assert judge(rows, now_minute=90, deployed_minute=0) == judge(
        shuffled, now_minute=90, deployed_minute=0
    )


def test_a_replay_equals_the_live_verdict_at_every_minute():
    minutes = list(
        instance_minutes(Fleet(seed=5, minutes=150, candidates=2, fault="slow", size=0.4, onset=60))
    )
    live = Comparison(0)
    for minute, rows in enumerate(minutes):
        live.add_minute(minute, rows)
        if minute % 30 == 29:
            seen = [row for each in minutes[: minute + 1] for row in each]
            assert judge(seen, now_minute=minute + 1, deployed_minute=0) == evaluate_comparison(
                live, now_minute=minute + 1
            )
