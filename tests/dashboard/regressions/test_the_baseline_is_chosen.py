"""The baseline: a pinned version, else of those that ran beside it the one last judged HEALTHY,
else the one with most traffic."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.common import clock
from dashboard.fleet.models import (
    Deployment,
    ModelVersion,
    Series,
    Stratum,
    VersionHour,
    WatchedModel,
)
from dashboard.projects.models import Project
from dashboard.regressions.baseline_selection import select_baseline
from dashboard.regressions.models import BaselineChoice, Verdict

pytestmark = pytest.mark.django_db
START = 29_900_000


@pytest.fixture
def model(project: Project) -> WatchedModel:
    return WatchedModel.objects.create(
        project=project, name="ranker", first_seen_at=clock.now(), last_seen_at=clock.now()
    )


def deployed(
    model: WatchedModel, name: str, *, start: int, last: int, calls: int = 0
) -> Deployment:
    seen = {"first_seen_at": clock.now(), "last_seen_at": clock.now()}
    version, _ = ModelVersion.objects.get_or_create(
        project=model.project, model=model, name=name, defaults=seen
    )
    stratum, _ = Stratum.objects.get_or_create(
        project=model.project, gpu="H200", mode="default", runtime="torch.compile", world_size=1
    )
    series = Series.objects.create(
        project=model.project,
        version=version,
        environment="production",
        stratum=stratum,
        region="forward",
        bucket=f"b{start}",
    )
    hour = (START - 60) // 60
    VersionHour.objects.create(
        project_id=model.project_id, day=hour // 24, series_id=series.pk, hour=hour, calls=calls
    )
    return Deployment.objects.create(
        project=model.project,
        model=model,
        version=version,
        environment="production",
        started_minute=start,
        last_minute=last,
    )


def test_without_an_earlier_deployment_there_is_none(model: WatchedModel) -> None:
    assert (
        select_baseline(deployment=deployed(model, "1", start=START, last=START + 50), earlier=[])
        is None
    )


def test_the_one_with_most_traffic_that_ran_beside_it(model: WatchedModel) -> None:
    gone = deployed(model, "0", start=START - 3000, last=START - 2000, calls=10**6)
    main = deployed(model, "1", start=START - 1000, last=START + 50, calls=5000)
    canary = deployed(model, "2", start=START - 500, last=START + 50, calls=20)
    newest = deployed(model, "3", start=START, last=START + 50)
    assert select_baseline(deployment=newest, earlier=[gone, main, canary]) == main


def test_it_takes_as_many_queries_for_many_versions_as_for_two(
    model: WatchedModel, django_assert_num_queries: Any
) -> None:
    others = [
        deployed(model, f"{number}", start=START - 1000 + number, last=START + 50, calls=number % 7)
        for number in range(20)
    ]
    newest = deployed(model, "newest", start=START, last=START + 50)
    for beside in (others[:2], others):
        with django_assert_num_queries(4):
            found = select_baseline(deployment=newest, earlier=beside)
    assert found == others[13]


def test_a_healthy_one_comes_before_one_with_more_traffic(model: WatchedModel) -> None:
    main = deployed(model, "1", start=START - 1000, last=START + 50, calls=5000)
    healthy = deployed(model, "2", start=START - 500, last=START + 50, calls=20)
    Verdict.objects.create(
        project=model.project,
        deployment=healthy,
        kind="healthy",
        sentence="",
        evidence={},
        minute=START,
        created_at=clock.now(),
    )
    assert (
        select_baseline(
            deployment=deployed(model, "3", start=START, last=START + 50), earlier=[main, healthy]
        )
        == healthy
    )


def test_a_pinned_version_comes_first(model: WatchedModel) -> None:
    main = deployed(model, "1", start=START - 1000, last=START + 50, calls=5000)
    pinned = deployed(model, "2", start=START - 500, last=START + 50, calls=20)
    choice = {
        "environment": "production",
        "kind": "pin",
        "chosen_at": clock.now(),
        "chosen_by_name": "ada",
    }
    BaselineChoice.objects.create(
        project=model.project, model=model, version=pinned.version, **choice
    )
    assert (
        select_baseline(
            deployment=deployed(model, "3", start=START, last=START + 50), earlier=[main, pinned]
        )
        == pinned
    )


def test_one_that_ended_before_is_named_when_nothing_ran_beside_it(model: WatchedModel) -> None:
    before = deployed(model, "1", start=START - 1000, last=START - 1)
    assert (
        select_baseline(
            deployment=deployed(model, "2", start=START, last=START + 50), earlier=[before]
        )
        == before
    )


def test_a_canary_that_was_stopped_long_before_is_not_what_was_replaced(
    model: WatchedModel,
) -> None:
    main = deployed(model, "1", start=START - 9000, last=START - 1)
    canary = deployed(model, "2", start=START - 5000, last=START - 4000)
    assert (
        select_baseline(
            deployment=deployed(model, "3", start=START, last=START + 50), earlier=[main, canary]
        )
        == main
    )


def told(deployment: Deployment, kind: str) -> None:
    Verdict.objects.create(
        project=deployment.project,
        deployment=deployment,
        kind=kind,
        sentence="",
        evidence={},
        minute=START,
        created_at=clock.now(),
    )


def test_a_version_to_be_rolled_back_is_none_while_there_is_another(model: WatchedModel) -> None:
    sound = deployed(model, "1", start=START - 2000, last=START - 600, calls=20)
    bad = deployed(model, "2", start=START - 1000, last=START + 50, calls=5000)
    newest = deployed(model, "3", start=START, last=START + 50)
    told(bad, "roll_back")
    assert select_baseline(deployment=newest, earlier=[sound, bad]) == sound
    assert select_baseline(deployment=newest, earlier=[bad]) == bad
