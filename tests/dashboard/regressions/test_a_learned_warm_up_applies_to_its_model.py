"""Stored warm-up: pairs with any verdict teach it, it is pooled for each model, applies to
live versions of that model alone, and gives way to a setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dashboard.common import clock
from dashboard.demo.simulated_fleet import SimulatedInstance, build_fleet, build_instances
from dashboard.fleet.models import Deployment, Instance, ModelVersion, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge import PRODUCTION
from dashboard.regressions.judge.warm_up import WINDOWS, WarmUpSums
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.judging_settings import detection_settings_set, schedule_rejudge
from dashboard.regressions.models import HealthyPair, LearnedWarmUp, Verdict
from dashboard.regressions.settings_resolver import SettingsResolver
from dashboard.regressions.variance_learning import (
    SETTLE_MINUTES,
    variances_learn,
    variances_pool,
)
from tests.dashboard.regressions.conftest import JUDGED_MINUTES, NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db
VERSIONS, PROCESSES = 6, 4


def lesson(until: int) -> WarmUpSums:
    """A version with processes that are 10% slower until an age."""
    young = {age: 0.1 if age < until else 0.0 for age in WINDOWS}
    return {
        str(age): [PROCESSES, PROCESSES * level, PROCESSES * (level**2 + 1e-4)]
        for age, level in young.items()
    }


def add_model(project: Project, name: str, until: int | None) -> WatchedModel:
    """A model with past pairs that teach this warm-up, or nothing."""
    now = clock.now()
    seen = {"project": project, "first_seen_at": now, "last_seen_at": now}
    model = WatchedModel.objects.create(name=name, **seen)
    for number in range(VERSIONS):
        version = ModelVersion.objects.create(model=model, name=f"v{number}", **seen)
        deployment = Deployment.objects.create(
            project=project,
            model=model,
            version=version,
            environment="production",
            started_minute=NOW_MINUTE + number,
            last_minute=NOW_MINUTE + number,
        )
        HealthyPair.objects.create(
            project=project,
            deployment=deployment,
            started_minute=NOW_MINUTE,
            taught={},
            warm_up=None if until is None else lesson(until),
        )
    return model


@pytest.fixture
def ended(
    time_is: Clock, store_reports: Callable[..., Any], send: Callable[..., None]
) -> Iterator[Deployment]:
    """A version that ran for two hours next to a baseline that was an hour older."""
    clear_comparisons()
    sent = build_instances(build_fleet(judged_minutes=120)[1:2], start_minute=NOW_MINUTE)
    newest = max(one.first_minute for one in sent)
    for one in sent:
        one.first_minute = NOW_MINUTE - (120 if one.first_minute == newest else 190)
        send(one)
    deployments_judge()
    time_is.minute += SETTLE_MINUTES + 5
    Deployment.objects.update(ended_minute=NOW_MINUTE)
    yield Deployment.objects.order_by("-started_minute")[0]
    clear_comparisons()


@pytest.mark.parametrize("kind", ["healthy", "watch", "roll_back"])
def test_a_pair_teaches_its_warm_up_with_any_verdict(ended: Deployment, kind: str) -> None:
    Verdict.objects.filter(deployment=ended).update(kind=kind)
    assert variances_learn() == 1
    pair = HealthyPair.objects.get()
    assert bool(pair.taught) == (kind == "healthy")
    count, total, _ = pair.warm_up["5"]
    assert count == Instance.objects.filter(version=ended.version).count() > 1
    assert abs(total / count) < 0.1


def test_each_model_has_its_own_warm_up(project: Project, other_project: Project) -> None:
    slow, quick = add_model(project, "slow", 30), add_model(project, "quick", 10)
    unknown = add_model(project, "unknown", None)
    other = add_model(other_project, "slow", 20)
    for one in (project, other_project):
        variances_pool(project=one, now_minute=NOW_MINUTE)
    book = SettingsResolver()
    in_force = [
        book.of(project_id=model.project_id, model_id=model.pk)
        for model in (slow, quick, unknown, other)
    ]
    assert [one.warm_up_minutes for one in in_force] == [30, 10, 5, 20]
    assert [one.warm_up_processes for one in in_force] == [24, 24, 0, 24]
    assert in_force[2] == book.of(project_id=project.pk) == PRODUCTION


def test_a_warm_up_that_is_no_longer_shown_ends(project: Project) -> None:
    model = add_model(project, "slow", 30)
    variances_pool(project=project, now_minute=NOW_MINUTE)
    assert LearnedWarmUp.objects.get().model == model
    HealthyPair.objects.filter(deployment__version__name__in=["v0", "v1"]).delete()
    variances_pool(project=project, now_minute=NOW_MINUTE)
    assert not LearnedWarmUp.objects.exists()


def test_the_setting_of_a_project_or_model_has_priority(project: Project) -> None:
    model = add_model(project, "slow", 30)
    variances_pool(project=project, now_minute=NOW_MINUTE)

    def in_force() -> tuple[int, str]:
        found = SettingsResolver().of(project_id=project.pk, model_id=model.pk)
        return found.warm_up_minutes, found.warm_up_source

    assert in_force() == (30, "learned")
    detection_settings_set(project=project, values={"warm_up_minutes": 8})
    assert in_force() == (8, "set")
    detection_settings_set(project=project, model=model, values={"warm_up_minutes": 12})
    assert in_force() == (12, "set")


def test_a_live_version_is_evaluated_again_with_a_new_warm_up(
    project: Project, side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    for instance in side_by_side:
        send(instance)
    current = Verdict.objects.filter(current=True, deployment__version__name="2026.11.3")
    deployments_judge()
    usual = current.get().evidence["warm_up"]
    assert (usual["minutes"], usual["source"]) == (5, "default")
    assert usual["candidate"]["minutes"] == 3 * (JUDGED_MINUTES - 1)
    LearnedWarmUp.objects.create(
        project=project,
        model=WatchedModel.objects.get(),
        minutes=15,
        processes=34,
        versions=8,
        learned_at=clock.now(),
    )
    schedule_rejudge(project_id=project.pk)
    deployments_judge()
    longer = current.get().evidence["warm_up"]
    assert (longer["minutes"], longer["source"], longer["processes"]) == (15, "learned", 34)
    assert longer["candidate"]["excluded_minutes"] > usual["candidate"]["excluded_minutes"] > 0
    assert longer["candidate"]["minutes"] == usual["candidate"]["minutes"]
