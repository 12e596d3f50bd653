"""A training job that is restarted under its name: each restart is a run of all its ranks, and a new
version is compared with the earlier restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from compilewatch.wire.messages import VERSION, Request

from dashboard.common import clock
from dashboard.demo.sender import build_past_reports
from dashboard.demo.simulated_fleet import Fault, SimulatedInstance, build_fleet
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judge_inputs.run_minutes import list_runs, read_run_minutes
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db

RANKS, MINUTES, EARLIER, NEWER = 2, 12, 6, 2
BEGIN = NOW_MINUTE - (EARLIER + NEWER) * (MINUTES + 2)


@pytest.fixture
def restarted(time_is: Clock, store_reports: Callable[..., None]) -> Iterator[None]:
    """Six restarts of an old version, then two of a slower one, folded after their end."""
    clear_comparisons()
    time_is.minute = NOW_MINUTE + 6
    jobs = [rank_of(number, rank) for number in range(EARLIER + NEWER) for rank in range(RANKS)]
    store_reports(
        *(
            Request(
                VERSION, clock.unix(), job.identity, [*build_past_reports(job, start_minute=BEGIN)]
            )
            for job in jobs
        )
    )
    fold_all()
    yield
    clear_comparisons()


def rank_of(number: int, rank: int) -> SimulatedInstance:
    """One rank of a restart."""
    model, at = build_fleet(judged_minutes=1)[0], BEGIN + number * (MINUTES + 2)
    newer = number >= EARLIER
    rollout = replace(
        model.rollouts[0],
        version="new" if newer else "old",
        since=BEGIN - at,
        until=BEGIN - at - MINUTES,
        instances=RANKS,
        job="pretrain",
        fault=Fault(slower=1.5 if newer else 1.0),
    )
    return SimulatedInstance(model, rollout, 10 * number + rank, BEGIN)


def test_each_restart_is_a_run_with_all_ranks(restarted: None) -> None:
    newer = Deployment.objects.get(version__name="new")
    older = Deployment.objects.get(version__name="old")
    runs = list_runs(
        project_id=newer.project_id,
        version_ids=[newer.version_id, older.version_id],
        environment=newer.environment,
        from_minute=BEGIN,
        now_minute=NOW_MINUTE + 6,
        limit=100,
    )
    assert [(len(run.processes), run.minutes, run.ended) for run in runs] == [
        (RANKS, MINUTES, True)
    ] * (EARLIER + NEWER)
    rows = read_run_minutes(
        project_id=newer.project_id,
        environment=newer.environment,
        runs=[("baseline", run) for run in runs[-3:]],
        minutes=5,
        now_minute=NOW_MINUTE + 6,
    )
    starts = [run.first_minute for run in runs[-3:]]
    assert {row.minute for row in rows} == {
        start + minute for start in starts for minute in range(5)
    }
    assert {row.unit for row in rows} == {run.unit for run in runs[-3:]}


def test_a_slower_version_is_rolled_back(restarted: None) -> None:
    deployments_judge()
    verdict = Verdict.objects.get(current=True, deployment__version__name="new")
    assert verdict.kind == "roll_back"
    assert verdict.evidence["layouts"] == ["run_against_run"]
    assert "than the last 6 runs of old" in verdict.sentence
    assert "on both runs" in verdict.sentence
