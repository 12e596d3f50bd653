"""Metrics of processes: memory and leaks can be ROLL BACK, costs of a start are WATCH at most, and
missing data is named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from dashboard.regressions.judge import (
    Comparison,
    Evidence,
    InstanceProcessMinute,
    InstanceStart,
    Outcome,
    evaluate_comparison,
    judge,
)
from dashboard.regressions.judge.text.verdict import verdict_sentence
from tests.bench.fleet_sim import Fleet
from tests.bench.process_sim import instance_states
from tests.dashboard.regressions.fleets import every_minute, instance

GIB = 1 << 30
NAMES = [f"b{i}" for i in range(6)] + [f"c{i}" for i in range(6)]
START = InstanceStart(
    compile_time=40.0,
    cold_start=60.0,
    cold_start_minute=-59,
    hits=38,
    misses=2,
    hit_seconds=10.0,
    miss_seconds=1.0,
)


def state(name: str, **changes: object) -> InstanceProcessMinute:
    arm = "candidate" if name.startswith("c") else "baseline"
    plain = InstanceProcessMinute(
        name, name, arm, ("H100",), 0, -60, 30 * GIB, 8 * GIB, start=START, gpu_allocated=27 * GIB
    )  # type: ignore[arg-type]
    return replace(plain, **changes)  # type: ignore[arg-type]


def states(minutes: int, *rows: InstanceProcessMinute) -> list[InstanceProcessMinute]:
    return [replace(row, minute=minute) for minute in range(minutes) for row in rows]


def judged(
    found: Iterable[InstanceProcessMinute], minutes: int, names: list[str] = NAMES
) -> Outcome:
    calls = every_minute([instance(name) for name in names], minutes)
    return judge(calls, now_minute=minutes, deployed_minute=0, states=found)


def side_by_side(minutes: int = 90, **of_candidate: object) -> Outcome:
    return judged(
        states(
            minutes,
            *(state(name, **(of_candidate if name.startswith("c") else {})) for name in NAMES),
        ),
        minutes,
    )


def row(outcome: Outcome, metric: str) -> Evidence:
    return next(row for row in outcome.evidence if row.metric == metric)


def sentence(outcome: Outcome) -> str:
    said = verdict_sentence(
        outcome, candidate="new", baseline="old", say_minute=lambda minute: f"minute {minute}"
    )
    return said.replace("\u00a0", " ")


def simulated(fleet: Fleet) -> Outcome:
    """A fleet with unchanged calls and simulated processes."""
    comparison = Comparison(0)
    calls = [instance(f"b{i}") for i in range(6)] + [
        instance(f"c{i}") for i in range(fleet.candidates)
    ]
    for minute, found in enumerate(instance_states(fleet)):
        comparison.add_minute(minute, [replace(call, minute=minute) for call in calls], found)
    return evaluate_comparison(comparison, now_minute=fleet.minutes)


def test_equal_processes_do_not_delay_healthy():
    outcome = side_by_side()
    assert outcome.verdict == "healthy"
    found = [found for found in outcome.evidence if not found.region]
    assert {found.metric for found in found} == {
        "gpu_memory",
        "host_memory",
        "compile_time",
        "cold_start",
        "recompiles",
        "cache",
    }
    assert not [found for found in found if found.label in ("REGRESSED", "IMPROVED")]


def test_memory_that_is_a_fifth_higher_on_all_instances_is_rolled_back():
    outcome = simulated(Fleet(seed=610_001, candidates=2, minutes=90, fault="memory", size=0.2))
    found = row(outcome, "gpu_memory")
    assert (outcome.verdict, found.label, found.drives) == ("roll_back", "REGRESSED", True)
    assert (found.affected_instances, found.candidate_instances) == (2, 2)
    assert found.change == pytest.approx(0.2, abs=0.03)
    assert sentence(outcome).startswith("Roll back new: peak GPU memory is 2")


def test_a_peak_left_by_a_compilation_is_watch_at_most():
    outcome = side_by_side(gpu_peak=80 * GIB)
    assert (outcome.verdict, row(outcome, "gpu_memory").label) == ("watch", "REGRESSED")
    assert "roll_back" not in {verdict for _, verdict in outcome.transitions}
    assert "peak GPU memory is 16" in sentence(outcome).lower().replace("gpu", "GPU")


def test_more_frequent_samples_of_memory_in_use_are_no_regression():
    """Samples hit a call more often on a busier version; the peak of the version is unchanged."""
    assert side_by_side(gpu_allocated=29 * GIB).verdict == "healthy"


def test_a_peak_without_reports_of_memory_in_use_is_watch_at_most():
    rows = [
        state(name, gpu_allocated=None, gpu_peak=(40 if name.startswith("c") else 30) * GIB)
        for name in NAMES
    ]
    assert judged(states(90, *rows), 90).verdict == "watch"


def test_host_memory_alone_is_watch():
    outcome = side_by_side(host_rss=12 * GIB)
    assert (outcome.verdict, row(outcome, "host_memory").label) == ("watch", "REGRESSED")
    assert "ost memory is 50% higher" in sentence(outcome)
    assert sentence(outcome).endswith("not a reason to roll back on its own.")


def test_a_leak_of_two_percent_an_hour_is_found():
    outcome = simulated(Fleet(seed=610_010, candidates=2, minutes=400, fault="leak", size=0.02))
    found = row(outcome, "leak")
    assert (outcome.verdict, found.label, found.drives) == ("roll_back", "REGRESSED", True)
    assert found.change == pytest.approx(0.02, abs=0.006)
    assert "GPU memory grows by" in sentence(outcome)


def test_a_leak_is_not_evaluated_before_two_hours_of_data():
    outcome = simulated(Fleet(seed=610_010, candidates=2, minutes=200, fault="leak", size=0.02))
    assert "leak" not in {found.metric for found in outcome.evidence}


def test_twice_the_compile_time_alone_is_watch_and_never_roll_back():
    slow = replace(START, compile_time=80.0)
    outcome = side_by_side(minutes=400, start=slow)
    assert outcome.verdict == "watch"
    assert {verdict for _, verdict in outcome.transitions} == {"not_enough_data", "watch"}
    found = row(outcome, "compile_time")
    assert (found.label, found.hard, found.change) == ("REGRESSED", False, pytest.approx(1.0))
    assert sentence(outcome).startswith("Compile time is 100% longer")


def test_a_slow_cold_start_is_evaluated_from_the_minute_of_its_end():
    slow = replace(START, cold_start=3000.0, cold_start_minute=30)
    assert row(side_by_side(minutes=30, start=slow), "cold_start").label == "NOT ENOUGH DATA"
    assert row(side_by_side(minutes=60, start=slow), "cold_start").label == "REGRESSED"


def test_a_recompile_storm_names_its_instances_and_is_watch():
    rows = [state(name) for name in NAMES]
    stormy = [replace(one, recompiles=int(one.instance in ("c1", "c4"))) for one in rows]
    outcome = judged([one for minute in range(60) for one in states(1, *(stormy if minute % 2 else rows))
                      for one in [replace(one, minute=minute)]], 60)  # fmt: skip
    found = row(outcome, "recompiles")
    assert (outcome.verdict, found.label) == ("watch", "REGRESSED")
    assert (found.affected_instances, found.candidate_instances) == (2, 6)
    assert "recompiles per hour and instance on 2 of 6 instances" in sentence(outcome)


def test_recompiles_of_the_first_twenty_minutes_are_no_storm():
    fresh = [state(name, first_minute=0, recompiles=1, start=None) for name in NAMES]
    assert "recompiles" not in {found.metric for found in judged(states(20, *fresh), 20).evidence}


def test_a_cache_that_no_longer_serves_is_watch_measured_by_seconds():
    cold = replace(START, hits=16, misses=24, hit_seconds=4.0, miss_seconds=36.0)
    outcome = side_by_side(start=cold)
    found = row(outcome, "cache")
    assert (outcome.verdict, found.label) == ("watch", "REGRESSED")
    assert found.candidate == pytest.approx(0.9)
    assert found.baseline == pytest.approx(1 / 11)
    assert "90% of compile seconds were not in a cache" in sentence(outcome)


def test_four_misses_are_too_few_for_a_cache_finding():
    few = replace(START, hits=0, misses=4, hit_seconds=0.0, miss_seconds=9.0)
    rows = [
        state(name, **({"start": few} if name == "c0" else {})) for name in NAMES if name < "c1"
    ]
    assert row(judged(states(60, *rows), 60, NAMES[:7]), "cache").label == "NO CHANGE"


def test_memory_that_only_the_baseline_reports_is_named_and_delays_healthy():
    outcome = side_by_side(gpu_peak=None)
    assert outcome.verdict == "not_enough_data"
    found = row(outcome, "gpu_memory")
    assert (found.label, found.reason, found.change) == ("NOT ENOUGH DATA", "one_sided", None)
    assert [(item.what, item.why, item.share) for item in outcome.not_compared] == [
        ("gpu_memory", "one_sided", None)
    ]


def test_memory_that_neither_version_reports_does_not_delay_healthy():
    outcome = judged(states(90, *(state(name, gpu_peak=None) for name in NAMES)), 90)
    assert outcome.verdict == "healthy"
    assert not outcome.not_compared
    assert "gpu_memory" not in {found.metric for found in outcome.evidence}


def test_memory_alone_does_not_make_a_silent_version_healthy():
    found = states(90, *(state(name) for name in NAMES))
    outcome = judge([], now_minute=90, deployed_minute=0, states=found)
    assert (outcome.verdict, outcome.reason) == ("not_enough_data", "no_candidate")


def test_zero_bytes_are_not_a_level():
    assert row(side_by_side(gpu_peak=0), "gpu_memory").reason == "one_sided"


def test_ranks_of_a_job_are_one_unit_and_the_fullest_rank_represents_it():
    ranks = [
        replace(state(name, gpu_peak=(30 + 6 * (name == "c1")) * GIB), unit=f"job {name[0]}")
        for name in NAMES
    ]
    found = row(judged(states(60, *ranks), 60), "gpu_memory")
    assert (found.baseline_instances, found.candidate_instances) == (1, 1)
    assert found.change == pytest.approx(0.2)


def test_restarts_on_one_host_do_not_count_as_independent_hosts():
    """One host a side, 5.6% apart as two hosts may be: ten consecutive processes on each host give
    the same certainty as one."""
    rows, states = [], []
    for minute in range(600):
        for unit, peak in (("b", 40_000_000_000), ("c", 42_240_000_000)):
            rows.append(instance(unit, minute=minute))
            life = f"{unit}{minute // 60}"
            born = minute - minute % 60
            states.append(
                InstanceProcessMinute(
                    life, unit, rows[-1].arm, ("H100", ""), minute, born, gpu_peak=peak, life=life
                )
            )
    outcome = judge(rows, states=states, now_minute=600, deployed_minute=0)
    assert [verdict for _, verdict in outcome.transitions] == ["not_enough_data"]
    memory = next(row for row in outcome.evidence if row.metric == "gpu_memory")
    assert (memory.baseline_instances, memory.candidate_instances) == (1, 1)


def test_each_process_of_a_host_has_its_own_start():
    rows, states = [], []
    for minute in range(180):
        for unit in ("b", "c"):
            rows.append(instance(unit, minute=minute))
            life, age = f"{unit}{minute // 60}", minute % 60
            start = InstanceStart(compile_time=30.0) if age >= 20 else None
            states.append(
                InstanceProcessMinute(
                    life,
                    unit,
                    rows[-1].arm,
                    ("H100", ""),
                    minute,
                    minute - age,
                    start=start,
                    life=life,
                )
            )
    outcome = judge(rows, states=states, now_minute=180, deployed_minute=0)
    compiled = next(row for row in outcome.evidence if row.metric == "compile_time")
    assert (compiled.baseline_instances, compiled.candidate_instances) == (3, 3)


def test_one_instance_a_side_is_evaluated_with_its_smallest_visible_change():
    found = row(judged(states(60, state("b0"), state("c0")), 60, ["b0", "c0"]), "gpu_memory")
    assert found.change == pytest.approx(0.0)
    assert found.smallest_visible is not None
    assert found.smallest_visible > 0.05


def test_processes_on_another_gpu_type_are_not_compared():
    outcome = side_by_side(stratum=("L40S",), gpu_peak=60 * GIB)
    assert not [found for found in outcome.evidence if not found.region]


def test_healthy_simulated_processes_have_no_findings():
    outcome = simulated(Fleet(seed=610_100, candidates=2, minutes=300))
    assert not [found.metric for found in outcome.evidence if found.label == "REGRESSED"]


@pytest.mark.parametrize(
    ("factor", "verdict", "label"), [(1.0, "healthy", "NO CHANGE"), (1.2, "roll_back", "REGRESSED")]
)
def test_memory_is_compared_with_the_last_day_of_an_ended_baseline(
    factor: float, verdict: str, label: str
):
    calls, found = [], []
    for minute in range(-300, 90):
        for number in range(8):
            name, first = (f"b{number}", -400) if minute < 0 else (f"c{number}", 0)
            calls.append(instance(name, minute=minute, first_minute=first, host=f"host-{number}"))
            held = round((30 + number / 10) * GIB * (factor if minute >= 0 else 1.0))
            found.append(
                state(name, minute=minute, first_minute=first, gpu_peak=held, gpu_allocated=held)
            )
    outcome = judge(calls, now_minute=90, deployed_minute=0, states=found)
    memory = next(row for row in outcome.evidence if row.unit == "bytes" and row.hard)
    assert (outcome.verdict, memory.label, memory.layouts) == (verdict, label, ("last_day",))
    assert memory.change == pytest.approx(factor - 1, abs=1e-6)
    assert (memory.baseline_instances, memory.candidate_instances) == (8, 8)
    assert memory.matched_minutes == 81
