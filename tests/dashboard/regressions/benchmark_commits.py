"""Fixture of a benchmark job for each commit, folded and evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from compilewatch.wire.messages import VERSION, Request

from dashboard.common import clock
from dashboard.demo.sender import build_past_reports
from dashboard.demo.simulated_fleet import Fault, SimulatedInstance, build_fleet
from dashboard.fleet.fold_service import fold_all
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

RUN_MINUTES, EVERY_MINUTES = 6, 60
Commits = Callable[..., Verdict]
HEALTHY = Fault()


@pytest.fixture
def commits(time_is: Clock, store_reports: Callable[..., None]) -> Iterator[Commits]:
    """`commits(12, slower=1.2, runs=2)` runs the benchmark of 12 earlier commits and then of a
    commit with this factor, and returns the verdict six minutes after its end."""
    clear_comparisons()

    def run(earlier: int, *, slower: float = 1.0, runs: int = 1, known: Fault = HEALTHY) -> Verdict:
        jobs = [
            benchmark(
                f"commit-{number:02}", NOW_MINUTE - (earlier - number) * EVERY_MINUTES, run, known
            )
            for number in range(earlier)
            for run in range(1 + number % 2)
        ]
        jobs += [
            benchmark("new", NOW_MINUTE, run, replace(known, slower=slower)) for run in range(runs)
        ]
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


def benchmark(version: str, at: int, run: int, fault: Fault) -> SimulatedInstance:
    """A run of the benchmark of a commit; the first one begins at this minute."""
    at += run * (RUN_MINUTES + 1)
    model = build_fleet(judged_minutes=RUN_MINUTES)[0]
    rollout = replace(
        model.rollouts[0],
        version=version,
        since=NOW_MINUTE - at,
        until=NOW_MINUTE - at - RUN_MINUTES,
        instances=1,
        fault=fault,
    )
    found = SimulatedInstance(model, rollout, run, NOW_MINUTE)
    found.identity = replace(found.identity, host="ci-runner")
    return found


def current() -> Verdict:
    """The verdict on the new commit."""
    return Verdict.objects.get(current=True, deployment__version__name="new")
