"""A job with diverged ranks raises an alert with the next report of its last rank, with or without
a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from compilewatch.wire.messages import STAGE, Compile, Gauges, Identity, Region, Report, Request
from compilewatch.wire.sketch import Sketch

from dashboard.alerts.models import Alert
from dashboard.alerts.services import alerts_sync
from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.projects.models import Project
from dashboard.regressions import rank_monitor
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from tests.dashboard.requests import instance_id

START = 1_794_000_000.0
FIRST = Compile(
    at=0.0,
    id="0/0",
    kind="first",
    outcome="ok",
    frame="step",
    file="train.py",
    line=8,
    seconds={"total": 4.0},
)
AGAIN = replace(FIRST, id="0/1", kind="recompile")


class Job:
    """Ranks that report every 10 s, and move the clock by 10 s."""

    def __init__(
        self, store: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, size: int = 4
    ) -> None:
        self.now, self._store, self._seq = START, store, 0
        monkeypatch.setattr(clock, "unix", lambda: self.now)
        self.ranks = [
            Identity(
                instance_id(number),
                START,
                "trainer",
                "v1",
                environment="prod",
                kind="training",
                job="train-7",
                rank=number,
                world_size=size,
            )
            for number in range(size)
        ]

    def window(
        self, *, compiles: dict[int, Compile] | None = None, calls: int = 30, **gauges: Any
    ) -> None:
        """All ranks report the next 10 s; a compilation ends in the middle of the window."""
        began, self.now = self.now, self.now + 10.0
        self._seq += 1
        for number, identity in enumerate(self.ranks):
            done = (
                [replace(compiles[number], at=began + 5.0)]
                if compiles and number in compiles
                else []
            )
            region = Region(
                "step",
                calls,
                "2^12",
                compiled=calls,
                sampled=calls,
                latency=Sketch.of([0.2] * calls),
            )
            report = Report(
                (self._seq, self._seq),
                (began, self.now),
                regions=[region] if calls else [],
                compiles=done,
                gauges=Gauges(**gauges),
            )
            self._store(Request(1, self.now, identity, [report]))
        self.now += 1.0
        fold_all()

    def begin(self) -> None:
        self.window(compiles=dict.fromkeys(range(len(self.ranks)), FIRST))
        self.window()


@pytest.fixture
def job(
    store_reports: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, project: Project
) -> Iterator[Job]:
    clear_comparisons()
    rank_monitor.clear_last_looks()
    yield Job(store_reports, monkeypatch)
    clear_comparisons()


def current_verdict() -> Verdict:
    return Verdict.objects.get(current=True, deployment__version__name="v1")


@pytest.mark.django_db
def test_a_recompilation_on_one_rank_alone_is_an_alert_before_its_minute_ends(job: Job):
    job.begin()
    assert rank_monitor.ranks_watch() == 0 and not Alert.objects.exists()
    job.window(compiles={2: AGAIN})
    assert rank_monitor.ranks_watch() == 1
    verdict = current_verdict()
    assert verdict.kind == "watch" and verdict.sentence.startswith(
        "Ranks of one job diverged: rank 2 compiled `step (train.py:8)`"
    )
    assert verdict.evidence["facts"][0]["instances"] == [job.ranks[2].id]
    alerts_sync()
    assert [(alert.severity, alert.state) for alert in Alert.objects.all()] == [("watch", "open")]
    job.window()
    assert rank_monitor.ranks_watch() == 0, "the divergence is reported once"
    job.now += 120
    deployments_judge()
    assert current_verdict().kind == "watch", "the minute's judge agrees"
    for _ in range(6):
        job.window()
        job.now += 600
    deployments_judge()
    assert current_verdict().kind == "not_enough_data", (
        "an hour later the state of the job is unknown"
    )


@pytest.mark.django_db
def test_hanging_ranks_make_no_calls_and_still_raise_an_alert(job: Job):
    job.begin()
    job.window(calls=0, compiles={0: AGAIN, 1: AGAIN})
    assert rank_monitor.ranks_watch() == 1 and current_verdict().kind == "watch"


@pytest.mark.django_db
def test_declared_stages_raise_no_alert(job: Job):
    for number, identity in enumerate(job.ranks):
        identity.components = {STAGE: str(number // 2)}
    job.begin()
    job.window(compiles={0: AGAIN, 1: AGAIN})
    assert rank_monitor.ranks_watch() == 0
    job.window(compiles={3: AGAIN})
    assert rank_monitor.ranks_watch() == 1 and "in stage 1" in current_verdict().sentence


@pytest.mark.django_db
def test_a_version_with_the_divergence_of_its_baseline_is_not_watched(job: Job):
    job.begin()
    job.window(compiles={0: AGAIN})
    assert rank_monitor.ranks_watch() == 1
    job.now += 60
    job.ranks = [
        replace(one, id=instance_id(100 + one.rank), version="v2", job="train-8", started=job.now)
        for one in job.ranks
    ]
    job.begin()
    job.window(compiles={0: AGAIN})
    rank_monitor.ranks_watch()
    deployments_judge()
    newer = Verdict.objects.get(current=True, deployment__version__name="v2")
    assert newer.kind == "not_enough_data"
    assert [(fact["kind"], fact["severity"]) for fact in newer.evidence["facts"]] == [
        ("ranks_diverged", "known")
    ]


@pytest.mark.django_db
def test_jobs_without_new_reports_cost_one_query(job: Job, django_assert_num_queries: Any):
    job.begin()
    rank_monitor.ranks_watch()
    with django_assert_num_queries(1):
        rank_monitor.ranks_watch()
