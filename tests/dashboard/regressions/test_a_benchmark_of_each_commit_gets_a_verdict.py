"""A benchmark job of a few minutes for each commit, from reports to a verdict: its runs are compared
with the runs of earlier commits."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.api.gate import GateResult, evaluate_gate
from dashboard.common import clock
from dashboard.demo.simulated_fleet import Fault
from dashboard.fleet.fold_service import end_stale_deployments, fold_all
from dashboard.fleet.models import Deployment
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.due_deployments import list_deployments
from dashboard.regressions.judge.settings import PRODUCTION
from dashboard.regressions.judge_service import deployment_judge, deployments_judge
from dashboard.regressions.models import BaselineChoice, Comparison, Verdict
from dashboard.vocabulary.numbers import SPACE
from tests.dashboard.regressions.benchmark_commits import (
    RUN_MINUTES,
    Commits,
    commits,
    current,
)
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

__all__ = ["commits"]

pytestmark = pytest.mark.django_db


def test_a_slower_commit_is_found_with_its_size(commits: Commits) -> None:
    verdict = commits(12, slower=1.2)
    (p50,) = (row for row in verdict.evidence["evidence"] if row["metric"] == "p50")
    assert verdict.kind in ("roll_back", "watch")
    assert "slower" in verdict.sentence
    assert "the last 18 runs of 12 earlier versions (same host), " in verdict.sentence
    assert f"{SPACE}ms, on its only run since " in verdict.sentence
    assert verdict.evidence["layouts"] == p50["layouts"] == ["run_against_run"]
    assert p50["low"] > 0 and p50["low"] < 0.2 < p50["high"]
    assert len(p50["dots"]) == 2 * 19
    assert {"new run 1", "commit-11 run 2"} < {dot["instance"] for dot in p50["dots"]}


def test_two_slower_runs_are_rolled_back(commits: Commits) -> None:
    verdict = commits(12, slower=1.2, runs=2)
    assert verdict.kind == "roll_back"
    assert "on both runs" in verdict.sentence


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


def test_a_frame_that_ran_eager_on_the_last_commit_is_no_news(commits: Commits) -> None:
    fallback = Fault(frame="forward", file="model.py", line=7, guard="L['x'].size()[0] == 8")
    verdict = commits(6, known=fallback)
    (fact,) = verdict.evidence["facts"]
    assert (fact["kind"], fact["severity"]) == ("latched_eager", "known")
    assert verdict.kind == "healthy"


def test_an_accepted_commit_begins_the_baseline(commits: Commits) -> None:
    deployment = commits(12).deployment
    accepted = Deployment.objects.get(version__name="commit-08")
    BaselineChoice.objects.create(
        project_id=deployment.project_id,
        model_id=deployment.model_id,
        environment=deployment.environment,
        version_id=accepted.version_id,
        kind="accept",
        chosen_at=clock.now(),
        chosen_by_name="admin",
    )
    deployments_judge_again()
    assert set(current().evidence["runs"]["versions"]) == {
        f"commit-{number:02}" for number in range(8, 12)
    }


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


def test_more_earlier_commits_take_no_more_queries(commits: Commits) -> None:
    deployment = commits(20).deployment
    *earlier, _ = list_deployments(model_id=deployment.model_id, environment=deployment.environment)
    counts = []
    for some in (earlier[-14:], earlier):
        clear_comparisons()
        with CaptureQueriesContext(connection) as queries:
            deployment_judge(
                deployment=deployment,
                earlier=some,
                now_minute=deployment.last_minute + 6,
                settings=PRODUCTION,
            )
        counts.append(len(queries))
        assert len(current().evidence["runs"]["runs"]) == 21
    assert counts[1] <= counts[0]


def ask(verdict: Verdict) -> GateResult:
    """The answer of the gate on the new commit."""
    deployment = verdict.deployment
    return evaluate_gate(
        project_id=deployment.project_id,
        model=deployment.model.name,
        version="new",
        environment=deployment.environment,
    )


def deployments_judge_again() -> None:
    """Evaluates every deployment as after a restart."""
    clear_comparisons()
    Comparison.objects.all().delete()
    deployments_judge()
