"""A benchmark job of a few minutes for each commit, from reports to a verdict: its runs are compared
with the runs of earlier commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from compilewatch.wire.messages import VERSION, Request

from dashboard.api.gate import GateResult, evaluate_gate
from dashboard.common import clock
from dashboard.demo.sender import build_past_reports
from dashboard.demo.simulated_fleet import Fault, SimulatedInstance, build_fleet
from dashboard.fleet.fold_service import end_stale_deployments, fold_all
from dashboard.fleet.models import Deployment
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Comparison, Verdict
from dashboard.vocabulary.numbers import SPACE
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db

RUN_MINUTES, EVERY_MINUTES = 6, 60
Commits = Callable[..., Verdict]


@pytest.fixture
def commits(time_is: Clock, store_reports: Callable[..., None]) -> Iterator[Commits]:
    """`commits(12, slower=1.2, runs=2)` runs the benchmark of 12 earlier commits and then of a
    commit with this factor, and returns the verdict six minutes after its end."""
    clear_comparisons()

    def run(earlier: int, *, slower: float = 1.0, runs: int = 1) -> Verdict:
        jobs = [
            benchmark(f"commit-{number:02}", NOW_MINUTE - (earlier - number) * EVERY_MINUTES, run)
            for number in range(earlier)
            for run in range(1 + number % 2)
        ]
        jobs += [benchmark("new", NOW_MINUTE, run, slower) for run in range(runs)]
        time_is.minute = NOW_MINUTE + runs * (RUN_MINUTES + 1) + 5
        store_reports(
            *(
                Request(
                    VERSION,
                    clock.unix(),
                    job.identity,
                    [*build_past_reports(job, start_minute=NOW_MINUTE)],
                )
                for job in jobs
            )
        )
        fold_all()
        deployments_judge()
        return current()

    yield run
    clear_comparisons()


def benchmark(version: str, at: int, run: int, slower: float = 1.0) -> SimulatedInstance:
    """A run of the benchmark of a commit; the first one begins at this minute."""
    at += run * (RUN_MINUTES + 1)
    model = build_fleet(judged_minutes=RUN_MINUTES)[0]
    rollout = replace(
        model.rollouts[0],
        version=version,
        since=NOW_MINUTE - at,
        until=NOW_MINUTE - at - RUN_MINUTES,
        instances=1,
        fault=Fault(slower=slower),
    )
    found = SimulatedInstance(model, rollout, run, NOW_MINUTE)
    found.identity = replace(found.identity, host="ci-runner")
    return found


def test_a_slower_commit_is_found_with_its_size(commits: Commits) -> None:
    verdict = commits(12, slower=1.2)
    (p50,) = (row for row in verdict.evidence["evidence"] if row["metric"] == "p50")
    assert verdict.kind in ("roll_back", "watch")
    assert "slower" in verdict.sentence
    assert "the last 18 runs of 12 earlier versions (same host) on its only run" in verdict.sentence
    assert verdict.evidence["layouts"] == p50["layouts"] == ["run_against_run"]
    assert p50["low"] > 0 and p50["low"] < 0.2 < p50["high"]
    assert len(p50["dots"]) == 2 * 19
    assert {"new run 1", "commit-11 run 2"} < {dot["instance"] for dot in p50["dots"]}


def test_two_slower_runs_are_rolled_back(commits: Commits) -> None:
    verdict = commits(12, slower=1.2, runs=2)
    assert verdict.kind == "roll_back"
    assert "all 2 runs" in verdict.sentence


def test_an_equal_commit_is_healthy_minutes_after_its_end(commits: Commits) -> None:
    verdict = commits(12)
    assert verdict.kind == "healthy"
    assert "compared with the last 18 runs of 12 earlier versions (same host)" in verdict.sentence
    runs = verdict.evidence["runs"]["runs"]
    assert {run["version"] for run in runs} == {"new", *(f"commit-{n:02}" for n in range(12))}
    assert all(1 <= run["excluded_minutes"] <= RUN_MINUTES // 3 for run in runs)


def test_the_number_of_missing_runs_is_named(commits: Commits) -> None:
    verdict = commits(2)
    assert verdict.kind == "not_enough_data"
    assert verdict.evidence["reason"] == "too_few_runs"
    assert verdict.sentence == (
        f"Only 3{SPACE}runs of earlier versions can be compared with new. "
        f"2{SPACE}more runs are needed."
    )


def test_the_verdict_holds_until_the_deployment_is_no_longer_evaluated(
    commits: Commits, time_is: Clock
) -> None:
    first = commits(12)
    for minutes in (20, 32, 55):
        time_is.minute = NOW_MINUTE + RUN_MINUTES + minutes
        fold_all()
        end_stale_deployments(now_minute=time_is.minute)
        deployments_judge()
        verdict = current()
        assert (verdict.kind, verdict.sentence) == (first.kind, first.sentence)
    assert verdict.evidence["runs"]["ended"]
    assert Deployment.objects.get(version__name="new").ended_minute is not None


def test_a_rolled_back_commit_is_in_no_baseline(commits: Commits) -> None:
    commits(12)
    deployment = Deployment.objects.get(version__name="commit-05")
    Verdict.objects.create(
        project_id=deployment.project_id,
        deployment=deployment,
        kind="roll_back",
        evidence={},
        minute=deployment.last_minute,
        created_at=clock.now(),
    )
    deployments_judge_again()
    versions = current().evidence["runs"]["versions"]
    assert "commit-05" not in versions and "commit-04" in versions


def test_an_ended_run_passes_the_gate(commits: Commits, time_is: Clock) -> None:
    verdict = commits(12)
    time_is.minute = NOW_MINUTE + RUN_MINUTES + 50
    end_stale_deployments(now_minute=time_is.minute)
    deployments_judge()
    answer = ask(verdict)
    assert (answer.state, answer.wait) == ("pass", False)
    clear_comparisons()


def test_a_run_without_enough_earlier_runs_does_not_pass_and_does_not_wait(
    commits: Commits, time_is: Clock
) -> None:
    verdict = commits(2)
    time_is.minute = NOW_MINUTE + RUN_MINUTES + 10
    deployments_judge()
    answer = ask(verdict)
    assert (answer.state, answer.wait) == ("inconclusive", False)
    assert answer.reasons[0]["code"] == "too_few_runs"


def ask(verdict: Verdict) -> GateResult:
    """The answer of the gate on the new commit."""
    deployment = verdict.deployment
    return evaluate_gate(
        project_id=deployment.project_id,
        model=deployment.model.name,
        version="new",
        environment=deployment.environment,
    )


def current() -> Verdict:
    """The verdict on the new commit."""
    return Verdict.objects.get(current=True, deployment__version__name="new")


def deployments_judge_again() -> None:
    """Evaluates every deployment as after a restart."""
    clear_comparisons()
    Comparison.objects.all().delete()
    deployments_judge()
