"""Short jobs are compared run against run: healthy runs are left alone, slower ones are found, and
one odd run is not enough to roll back."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from dashboard.regressions.judge.runs.comparison import RunComparison
from dashboard.regressions.judge.runs.run import (
    Run,
    assign_sessions,
    count_unsettled,
    take_steady_part,
)
from dashboard.regressions.judge.settings import PRODUCTION
from tests.dashboard.regressions.short_jobs import (
    CROWDED_CPU,
    H200,
    World,
    simulate_sequence,
    simulate_version,
)

WORLDS = {
    "quiet": World(0.01, 0.01),
    "usual": World(0.02, 0.03),
    "days differ": World(0.05, 0.01),
    "runs differ": World(0.01, 0.05),
    "crowded CPU": World(0.01, 0.005, measured=CROWDED_CPU),
    "H200": World(0.005, 0.002, measured=H200),
}
SEQUENCES = 60


def count_verdicts(runs: int, slower: float = 1.0) -> Counter[str]:
    """Verdicts on a new version in every world."""
    return Counter(
        RunComparison(
            *simulate_sequence(world, 1000 * runs + seed, candidate_runs=runs, slower=slower),
            PRODUCTION,
        ).verdict
        for world in WORLDS.values()
        for seed in range(SEQUENCES)
    )


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_healthy_runs_are_left_alone(runs: int) -> None:
    found = count_verdicts(runs)
    total = found.total()
    print(f"healthy, {runs} runs: {dict(found)} of {total}")
    assert total >= 300
    assert found["roll_back"] <= PRODUCTION.roll_back_alpha * total
    assert found["roll_back"] + found["watch"] <= PRODUCTION.watch_alpha * total
    assert found["healthy"] >= 0.5 * total


@pytest.mark.parametrize(
    ("slower", "runs", "least"),
    [
        (1.1, 1, 0.2),
        (1.1, 2, 0.33),
        (1.2, 1, 0.68),
        (1.2, 2, 0.8),
        (1.3, 1, 0.9),
        (1.3, 2, 0.95),
    ],
)
def test_slower_runs_are_found(slower: float, runs: int, least: float) -> None:
    found = count_verdicts(runs, slower)
    total = found.total()
    print(f"{slower - 1:+.0%}, {runs} runs: {dict(found)} of {total}")
    assert found["roll_back"] + found["watch"] >= least * total
    assert found["healthy"] <= 0.1 * total


@pytest.mark.parametrize(("slower", "least"), [(1.2, 0.6), (1.5, 0.95), (4.0, 1.0)])
@pytest.mark.parametrize("runs", [2, 3])
def test_one_odd_run_is_watched_in_every_world(runs: int, slower: float, least: float) -> None:
    found: Counter[str] = Counter()
    for world in WORLDS.values():
        for seed in range(20):
            own, baseline = simulate_sequence(world, 1000 * runs + seed, candidate_runs=runs)
            own = [*own[:-1], slow_down(own[-1], slower)]
            found[RunComparison(own, baseline, PRODUCTION).verdict] += 1
    print(f"one of {runs} runs {slower - 1:+.0%}: {dict(found)}")
    assert found["watch"] + found["roll_back"] >= least * found.total()
    assert found["roll_back"] <= 0.05 * found.total()


def test_an_odd_run_below_an_earlier_run_is_no_news() -> None:
    own, baseline = simulate_sequence(World(0.01, 0.01), 3, candidate_runs=2)
    own = [own[0], slow_down(own[1], 1.5)]
    assert RunComparison(own, baseline, PRODUCTION).verdict == "watch"
    earlier = [*baseline[:-1], slow_down(baseline[-1], 1.6)]
    assert RunComparison(own, earlier, PRODUCTION).verdict == "not_enough_data"


def test_an_odd_run_of_a_faster_version_is_no_regression() -> None:
    own, baseline = simulate_sequence(World(0.01, 0.01), 3, candidate_runs=5)
    own = [*(slow_down(run, 0.9) for run in own[:-1]), slow_down(own[-1], 1.3)]
    assert RunComparison(own, baseline, PRODUCTION).verdict == "not_enough_data"


def slow_down(run: Run, factor: float) -> Run:
    """The run with longer calls."""
    rows = tuple(
        replace(
            row,
            p50=factor * (row.p50 or 0.0),
            p99=factor * (row.p99 or 0.0),
            latency_sum=factor * row.latency_sum,
        )
        for row in run.rows
    )
    return replace(run, rows=rows)


def test_one_odd_run_of_two_is_not_rolled_back() -> None:
    world = World(0.01, 0.01)
    candidate, baseline = simulate_sequence(world, 3, candidate_runs=1)
    (odd,) = simulate_version(
        world, random.Random(4), "new", "candidate", 90 * 12 + 10, 1, slower=1.5
    )
    odd = replace(odd, unit="new run 2")
    comparison = RunComparison([*candidate, odd], baseline, PRODUCTION)
    assert comparison.verdict == "watch"
    both = RunComparison(*simulate_sequence(world, 3, candidate_runs=2, slower=1.25), PRODUCTION)
    assert both.verdict == "roll_back"


def test_one_run_within_the_range_of_earlier_runs_is_not_rolled_back() -> None:
    candidate, baseline = simulate_sequence(World(0.01, 0.01), 5, slower=1.25)
    assert RunComparison(candidate, baseline, PRODUCTION).verdict == "roll_back"
    (odd,) = simulate_version(
        World(0.01, 0.01), random.Random(1), "odd", "baseline", 90 * 11 + 40, 1, slower=1.25
    )
    assert RunComparison(candidate, [*baseline, odd], PRODUCTION).verdict != "roll_back"


def test_the_number_of_missing_runs_is_known() -> None:
    candidate, baseline = simulate_sequence(World(0.01, 0.01), 1, versions=2, runs_of=lambda _: 1)
    comparison = RunComparison(candidate, baseline, PRODUCTION)
    assert (comparison.verdict, comparison.reason) == ("not_enough_data", "too_few_runs")
    assert comparison.missing_runs == 3


def test_errors_are_compared_as_rates_of_runs() -> None:
    candidate, baseline = simulate_sequence(World(0.01, 0.01, errors=0.002), 2, candidate_runs=2)
    assert RunComparison(candidate, baseline, PRODUCTION).verdict == "healthy"
    failing, _ = simulate_sequence(World(0.01, 0.01, errors=0.1), 2, candidate_runs=2)
    comparison = RunComparison(failing, baseline, PRODUCTION)
    assert comparison.verdict == "roll_back"
    assert [
        change.metric.name for change in comparison.judged if comparison.is_regressed(change)
    ] == ["errors"]


def test_gpu_time_decides_where_calls_return_early() -> None:
    candidate, baseline = simulate_sequence(World(0.01, 0.01), 2, candidate_runs=2)
    slower = [[add_gpu_time(run, 1.3) for run in candidate], [add_gpu_time(r) for r in baseline]]
    comparison = RunComparison(*slower, PRODUCTION)
    assert comparison.verdict == "roll_back"
    judged = {change.metric.name for change in comparison.judged}
    assert "gpu_p50" in judged and "p50" not in judged


def add_gpu_time(run: Run, factor: float = 1.0) -> Run:
    """The run with a GPU time of twice the call time."""
    rows = tuple(
        replace(row, gpu_p50=2.0 * factor * (row.p50 or 0.0), gpu_count=50) for row in run.rows
    )
    return replace(run, rows=rows)


def test_warm_up_ends_when_levels_settle_within_a_third_of_the_run() -> None:
    assert count_unsettled([0.5, 0.0, 0.01, 0.0, 0.01, 0.0]) == 1
    assert count_unsettled([0.5, 0.4, 0.01, 0.0, 0.01, 0.0]) == 2
    assert count_unsettled([0.9, 0.8, 0.7, 0.6, 0.0, 0.0, 0.0, 0.0, 0.0]) == 3
    assert count_unsettled([0.0] * 30) == 1
    assert count_unsettled([0.5, 0.0]) == 0


def test_a_run_that_continues_is_compared_at_fixed_ages() -> None:
    (run,) = simulate_version(
        World(0.01, 0.01, minutes=30), random.Random(1), "new", "candidate", 0, 1
    )
    parts = []
    for minutes in range(1, 31):
        rows = tuple(row for row in run.rows if row.minute < minutes)
        parts.append(take_steady_part(replace(run, ended=False, rows=rows)))
    assert parts[3] is None
    assert {part.minutes for part in parts if part} == {5, 10, 20}
    assert len({tuple(row.minute for row in part.rows) for part in parts if part}) == 3


def test_runs_within_an_hour_are_one_session() -> None:
    runs = [
        Run(name, "a", "baseline", minute, True, ())
        for name, minute in (("1", 0), ("2", 59), ("3", 60), ("4", 130))
    ]
    assert assign_sessions(runs) == {"1": "1", "2": "1", "3": "3", "4": "4"}


def test_the_order_of_runs_changes_nothing() -> None:
    candidate, baseline = simulate_sequence(World(0.02, 0.03), 9, candidate_runs=2, slower=1.1)
    found = [
        [
            (change.metric.name, getattr(change, "delta", None), getattr(change, "error", None))
            for change in RunComparison(own, earlier, PRODUCTION).changes
        ]
        for own, earlier in (
            (candidate, baseline),
            ([*reversed(candidate)], [*reversed(baseline)]),
        )
    ]
    assert found[0] == found[1]
