"""The runs of a baseline: the newest ones of several versions, on the candidate's hosts if there are
enough."""

from __future__ import annotations

from dashboard.fleet.selectors.judge_inputs.run_minutes import StoredRun
from dashboard.regressions.run_reader import (
    MOST_RUNS,
    RUNS_PER_VERSION,
    choose_runs,
    is_short,
)


def run_of(
    version: int, start: int, *, host: str = "a", ended: bool = True, kind: str = "serving"
) -> StoredRun:
    return StoredRun(f"{version} {start}", version, kind, host, start, start + 5, ended, {})


def test_the_newest_runs_of_several_versions_are_chosen() -> None:
    runs = [run_of(version, 100 * version + run) for version in range(10) for run in range(6)]
    chosen, _ = choose_runs([run_of(99, 2000)], runs[-6:], runs[:-6])
    assert len(chosen) == MOST_RUNS
    counts = [sum(run.version_id == version for run in chosen) for version in range(9, 4, -1)]
    assert counts == [RUNS_PER_VERSION] * 5


def test_one_version_fills_the_baseline_if_it_is_the_only_one() -> None:
    runs = [run_of(1, start) for start in range(30)]
    chosen, _ = choose_runs([run_of(99, 2000)], runs, [])
    assert {run.first_minute for run in chosen} >= set(range(26, 30))
    assert len(chosen) == MOST_RUNS


def test_runs_on_the_same_host_are_used_alone_if_there_are_enough() -> None:
    here = [run_of(1, start) for start in range(5)]
    away = [run_of(2, 50 + start, host="b") for start in range(5)]
    assert choose_runs([run_of(99, 2000)], away, here) == (here[::-1], True)
    chosen, same_host = choose_runs([run_of(99, 2000)], away, here[1:])
    assert len(chosen) == 9 and not same_host
    chosen, same_host = choose_runs([run_of(99, 2000, host="")], away, here)
    assert len(chosen) == 10 and not same_host


def test_a_run_that_continues_is_in_no_baseline() -> None:
    chosen, _ = choose_runs([run_of(99, 2000)], [run_of(1, 1), run_of(1, 9, ended=False)], [])
    assert [run.first_minute for run in chosen] == [1]


def test_jobs_are_short_or_train() -> None:
    long = run_of(1, 0)._replace(last_minute=500)
    assert is_short([run_of(1, 0), run_of(1, 9), long])
    assert not is_short([run_of(1, 0), long, long])
    assert is_short([long._replace(kind="training")])
