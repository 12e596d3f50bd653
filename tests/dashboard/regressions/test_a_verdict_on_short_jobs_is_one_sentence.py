"""A verdict on short jobs names the runs of its baseline, and the runs or shapes that are missing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from dashboard.regressions.judge import PRODUCTION, Comparison, Outcome, evaluate_comparison
from dashboard.regressions.judge.runs.comparison import RunComparison
from dashboard.regressions.judge.runs.run import Run
from dashboard.regressions.judge.text.verdict import verdict_sentence
from dashboard.vocabulary.numbers import SPACE
from tests.dashboard.regressions.short_jobs import World, simulate_sequence, simulate_version

QUIET = World(0.01, 0.01)


def judge_runs(candidate: Sequence[Run], baseline: Sequence[Run]) -> Outcome:
    comparison = Comparison(0)
    comparison.runs = RunComparison(candidate, baseline, PRODUCTION)
    return evaluate_comparison(comparison, now_minute=1100)


def say(outcome: Outcome) -> str:
    return verdict_sentence(outcome, candidate="new", baseline="old", say_minute=str)


def test_one_slower_run_is_watched_until_it_is_confirmed() -> None:
    outcome = judge_runs(*simulate_sequence(QUIET, 1, slower=1.18))
    assert outcome.verdict == "watch"
    assert "slower" in say(outcome) and "than the last 19 runs of 12 earlier versions" in say(
        outcome
    )
    assert say(outcome).endswith("; run it once more to confirm.")


def test_an_odd_run_of_two_is_named_as_such() -> None:
    candidate, baseline = simulate_sequence(QUIET, 3)
    (odd,) = simulate_version(QUIET, random.Random(4), "new", "candidate", 1100, 1, slower=1.5)
    outcome = judge_runs([*candidate, replace(odd, unit="new run 2")], baseline)
    assert outcome.verdict == "watch"
    assert "on 1 of 2 runs" in say(outcome)
    assert say(outcome).endswith("; one run accounts for most of it: run it once more.")


def test_an_odd_run_is_named_if_it_has_two_strata() -> None:
    candidate, baseline = simulate_sequence(QUIET, 3)
    (odd,) = simulate_version(QUIET, random.Random(4), "new", "candidate", 1100, 1, slower=4.0)
    own = [add_stratum(run) for run in (*candidate, replace(odd, unit="new run 2"))]
    outcome = judge_runs(own, [add_stratum(run) for run in baseline])
    assert outcome.verdict == "watch"
    assert say(outcome).endswith("; one run accounts for most of it: run it once more.")


def add_stratum(run: Run) -> Run:
    """The run with the same calls in a second stratum."""
    more = (replace(row, stratum="H200") for row in run.rows)
    return replace(run, rows=(*run.rows, *more))


def test_a_healthy_run_states_what_is_ruled_out() -> None:
    outcome = judge_runs(*simulate_sequence(QUIET, 1))
    assert outcome.verdict == "healthy" and outcome.bound is not None
    assert f"in 5{SPACE}min compared with the last 19 runs of 12 earlier versions" in say(outcome)


def test_missing_runs_are_counted() -> None:
    candidate, baseline = simulate_sequence(QUIET, 1, versions=4, runs_of=lambda _: 1)
    assert say(judge_runs(candidate, baseline)) == (
        f"Only 4{SPACE}runs of earlier versions can be compared with new. "
        f"1{SPACE}more run is needed."
    )
    assert say(judge_runs(candidate, [])) == (
        f"No run of earlier versions can be compared with new. 5{SPACE}more runs are needed."
    )


def test_a_run_that_has_just_begun_waits() -> None:
    ((run,), baseline) = simulate_sequence(QUIET, 1)
    rows = tuple(row for row in run.rows if row.minute < run.first_minute + 4)
    outcome = judge_runs([replace(run, rows=rows, ended=False)], baseline)
    assert (outcome.verdict, outcome.reason) == ("not_enough_data", "run_in_progress")
    assert outcome.runs is not None and not outcome.runs.ended
    assert say(outcome).startswith("new is running;")


def test_other_shapes_are_named_and_not_compared() -> None:
    ((run,), baseline) = simulate_sequence(QUIET, 1)
    rows = tuple(replace(row, bucket=f"other {row.bucket}") for row in run.rows)
    outcome = judge_runs([replace(run, rows=rows)], baseline)
    assert (outcome.verdict, outcome.reason) == ("not_enough_data", "no_common_stratum")
    rows = tuple(
        replace(row, bucket="other", calls=10 * row.calls) if row.bucket == "b8" else row
        for row in run.rows
    )
    outcome = judge_runs([replace(run, rows=rows)], baseline)
    assert outcome.verdict == "watch"
    assert [item.why for item in outcome.not_compared] == ["no_run_in_bucket"]
    assert "can be compared with the last 19 runs" in say(outcome)
