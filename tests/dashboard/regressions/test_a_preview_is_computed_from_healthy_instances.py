"""A preview of settings: planned over periods of healthy versions, computed by the workers step by
step, and stored with its counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions import placebo_periods, placebo_preview
from dashboard.regressions.judge.placebo import PlaceboTally
from dashboard.regressions.models import JudgingChoice, PlaceboPreview, Verdict
from dashboard.regressions.placebo_periods import (
    REASON_ALERTED,
    REASON_FEW,
    REASON_SHORT,
    plan_periods,
    read_period,
)
from dashboard.regressions.placebo_preview import (
    find_preview,
    preview_request,
    previews_compute,
)
from dashboard.regressions.tasks import preview as preview_task
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock
from tests.dashboard.requests import request_make

pytestmark = pytest.mark.django_db
Run = Callable[..., Deployment]


@pytest.fixture
def run(time_is: Clock, store_reports: Callable[..., Any]) -> Run:
    """`run("ranker", "1", instances=4, minutes=130)` folds a version that ends now."""
    started = iter(range(0, 10_000, 100))

    def folded(
        model: str, version: str, *, instances: int = 4, minutes: int = 130, **other: Any
    ) -> Deployment:
        first = next(started)
        for number in range(instances):
            who = {"host": f"h{number}", "instance": first + number, **other}
            store_reports(
                request_make(
                    model=model, version=version, minutes=minutes, end=NOW_MINUTE * 60.0, **who
                )
            )
        fold_all()
        return Deployment.objects.get(model__name=model, version__name=version)

    return folded


def request(project: Project, **other: Any) -> PlaceboPreview:
    given = {"model": None, "values": {}, "actor_name": "ada", **other}
    return preview_request(project=project, **given)


def test_a_preview_counts_pairs_of_a_healthy_version(run: Run, project: Project) -> None:
    run("ranker", "1")
    asked = request(project)
    assert previews_compute(seconds=60.0) == 2
    asked.refresh_from_db()
    tally = PlaceboTally(**asked.tally)
    assert (tally.pairs, tally.roll_backs, tally.alerts, asked.done) == (3, 0, 0, 1)
    assert len(tally.sizes) == 1 and tally.sizes[0] is not None
    assert asked.finished_at is not None and asked.spent_s > 0.0
    assert previews_compute(seconds=60.0) == 0


def test_the_chosen_settings_decide(run: Run, project: Project) -> None:
    deployment = run("ranker", "1")
    muted = {f"{name}.muted": True for name in ("p50", "p99", "throughput")}
    request(project, values=muted)
    previews_compute(seconds=60.0)
    assert find_preview(project=project, model=None).tally["sizes"] == [None]  # type: ignore[union-attr]
    JudgingChoice.objects.create(project=project, model=deployment.model, values=muted)
    request(project)
    previews_compute(seconds=60.0)
    assert find_preview(project=project, model=None).tally["sizes"] == [None]  # type: ignore[union-attr]


def test_a_run_ends_in_time_and_the_next_run_continues(run: Run, project: Project) -> None:
    run("ranker", "1")
    request(project)
    nudged: list[int] = []
    assert previews_compute(seconds=0.0, unfinished=lambda: nudged.append(1)) == 1
    found = find_preview(project=project, model=None)
    assert found is not None and found.plan is not None
    assert (found.finished_at, nudged) == (None, [1])
    preview_task()
    found.refresh_from_db()
    assert found.finished_at is not None and found.tally["pairs"] == 3


def test_two_workers_store_a_period_once(run: Run, project: Project) -> None:
    run("ranker", "1")
    request(project)
    previews_compute(seconds=0.0)
    first, second = PlaceboPreview.objects.get(), PlaceboPreview.objects.get()
    placebo_preview._preview_advance(first)
    placebo_preview._preview_advance(second)
    stored = PlaceboPreview.objects.get()
    assert (stored.done, stored.tally["pairs"]) == (1, 3)


def test_a_newer_request_replaces_an_unfinished_one(project: Project) -> None:
    request(project)
    newest = request(project, values={"watch_alpha": 0.1})
    assert list(PlaceboPreview.objects.all()) == [newest]
    for _ in range(5):
        previews_compute(seconds=60.0)
        request(project)
    assert PlaceboPreview.objects.count() == placebo_preview.PREVIEWS_KEPT


def test_a_model_has_its_own_preview(run: Run, project: Project) -> None:
    deployment = run("ranker", "1")
    run("embedder", "1", instances=2)
    of_model = request(project, model=deployment.model)
    assert find_preview(project=project, model=None) is None
    assert find_preview(project=project, model=deployment.model) == of_model
    assert [
        (len(plan.periods), plan.left_out)
        for plan in (
            plan_periods(project=project, model=deployment.model, now_minute=NOW_MINUTE),
            plan_periods(project=project, model=None, now_minute=NOW_MINUTE),
        )
    ] == [(1, {}), (1, {REASON_FEW: 1})]


def test_skipped_versions_are_counted_by_reason(
    run: Run, project: Project, other_project: Project, time_is: Clock
) -> None:
    run("young", "1", minutes=100)
    alerted = run("alerted", "1")
    Verdict.objects.create(
        project=project,
        deployment=alerted,
        kind="watch",
        sentence="",
        evidence={},
        minute=NOW_MINUTE,
        created_at=alerted.version.first_seen_at,
    )
    run("small", "1", instances=3)
    plan = plan_periods(project=project, model=None, now_minute=NOW_MINUTE)
    assert plan.left_out == {REASON_SHORT: 1, REASON_ALERTED: 1, REASON_FEW: 1}
    assert not plan.periods
    assert not plan_periods(project=other_project, model=None, now_minute=NOW_MINUTE).left_out
    request(project)
    assert previews_compute(seconds=60.0) == 1
    found = find_preview(project=project, model=None)
    assert found is not None and found.finished_at is not None and found.tally == {}


def test_units_and_rows_of_a_period_are_bounded(
    run: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = run("ranker", "1", instances=6)
    monkeypatch.setattr(placebo_periods, "MAX_UNITS", 4)
    [planned] = plan_periods(project=project, model=None, now_minute=NOW_MINUTE).periods
    assert len(planned.units) == 4
    whole = read_period(deployment=deployment, planned=planned)
    assert whole.units == set(planned.units)
    assert {state.unit for state in whole.states} == set(planned.units)
    assert {row.arm for row in whole.rows} == {"baseline"}
    monkeypatch.setattr(placebo_periods, "MAX_ROWS", 1)
    early = read_period(deployment=deployment, planned=planned)
    assert early.end_minute == planned.first_minute + placebo_periods.READ_MINUTES
    assert {row.minute for row in early.rows} < {row.minute for row in whole.rows}


def test_a_deleted_version_adds_no_pair(run: Run, project: Project) -> None:
    run("ranker", "1")
    request(project)
    previews_compute(seconds=0.0)
    WatchedModel.objects.all().delete()
    previews_compute(seconds=60.0)
    found = find_preview(project=project, model=None)
    assert found is not None and found.finished_at is not None
    assert found.tally["pairs"] == 0


def test_a_preview_that_fails_ends(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    request(project)
    PlaceboPreview.objects.update(plan={"periods": [[0]], "left_out": {}})
    assert previews_compute(seconds=60.0) == 1
    found = find_preview(project=project, model=None)
    assert found is not None and found.finished_at is not None
    assert "step 0 of preview" in caplog.text
