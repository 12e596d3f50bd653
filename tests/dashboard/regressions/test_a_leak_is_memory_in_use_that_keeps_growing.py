"""Leak: memory in use that grows at equal age of the processes, confirmed at a second look; a
climbing peak alone is no leak."""

from __future__ import annotations

from math import exp, log

import pytest

from dashboard.regressions.judge import Comparison, InstanceProcessMinute, evaluate_comparison
from tests.bench.bench_simple_rules import CASES, GIB, Case, State, memory, verdicts
from tests.dashboard.regressions.fleets import instance

BY_NAME = {case.name: case for case in CASES}
CALM = [(0, "not_enough_data"), (59, "healthy")]


@pytest.mark.parametrize(
    "name",
    ["young process, climbing peak, memory in use level", "young process, memory in use settles"],
)
def test_growth_of_a_young_process_is_no_leak(name: str) -> None:
    assert verdicts(BY_NAME[name]) == CALM


def test_a_leak_is_watched_and_rolled_back_after_the_second_look() -> None:
    said = {verdict: minute for minute, verdict in verdicts(BY_NAME["leak of 2% an hour"])}
    assert 90 + 120 + 60 - 5 <= said["watch"] < said["roll_back"] <= 300


def test_growth_that_ends_before_the_second_look_is_no_finding() -> None:
    """It may delay HEALTHY at 6 h, while half of the known time still grew."""

    def until_the_first_look(row: InstanceProcessMinute) -> InstanceProcessMinute:
        return memory(
            row, 40, 27 * exp(0.02 * min(row.age, 210) / 60) if row.arm == "candidate" else 27
        )

    said = {verdict for _, verdict in verdicts(Case("ends", 3, 720, state=until_the_first_look))}
    assert not {"watch", "roll_back"} & said


@pytest.mark.parametrize("speed", [1, 4])
def test_growth_that_the_baseline_had_at_the_same_age_is_no_leak(speed: int) -> None:
    """Both versions fill a cache for ten hours; the baseline started twelve hours before the
    deployment."""

    def filling(age: int) -> float:
        return 27 * (1 + 0.02 * speed * log(1 + age / 60))

    assert leak_of(lambda row: memory(row, 40, filling(row.age))) != "REGRESSED"
    assert (
        leak_of(
            lambda row: memory(
                row, 40, filling(row.age) * exp(0.02 * row.age / 60 * (row.arm == "candidate"))
            )
        )
        == "REGRESSED"
    )


def leak_of(state: State, minutes: int = 480) -> str:
    comparison = Comparison(0, with_past=True)
    for minute in range(-720, minutes):
        rows, states = [], []
        for name in ("b0", "b1", "b2", "c0", "c1", "c2")[: 6 if minute >= 0 else 3]:
            born = -5 if name[0] == "c" else -720
            rows.append(instance(name, minute=minute, first_minute=born))
            states.append(
                state(
                    InstanceProcessMinute(
                        name, name, rows[-1].arm, ("H100",), minute, born, 40 * GIB
                    )
                )
            )
        comparison.add_minute(minute, rows, states)
    rows_of = evaluate_comparison(comparison, now_minute=minutes).evidence
    return next(row.label for row in rows_of if row.metric == "leak")


def test_without_reports_of_memory_in_use_no_leak_is_evaluated() -> None:
    def silent(row: InstanceProcessMinute) -> InstanceProcessMinute:
        return InstanceProcessMinute(
            row.instance,
            row.unit,
            row.arm,
            row.stratum,
            row.minute,
            row.first_minute,
            30 * GIB + row.age * GIB // 60,
        )

    comparison = Comparison(0)
    for minute in range(400):
        rows = [instance(name, minute=minute) for name in ("b0", "c0")]
        found = [
            silent(InstanceProcessMinute(row.instance, row.unit, row.arm, ("H100",), minute, -60))
            for row in rows
        ]
        comparison.add_minute(minute, rows, found)
    assert "leak" not in {
        row.metric for row in evaluate_comparison(comparison, now_minute=400).evidence
    }
