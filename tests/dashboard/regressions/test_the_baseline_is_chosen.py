"""Choice of the baseline: a pinned version, otherwise the concurrent version with the latest
HEALTHY verdict, otherwise the concurrent version with the most traffic."""

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


def test_without_an_earlier_deployment_there_is_no_baseline(model: WatchedModel) -> None:
    assert (
        select_baseline(deployment=deployed(model, "1", start=START, last=START + 50), earlier=[])
        is None
    )


def test_the_concurrent_version_with_the_most_traffic_is_chosen(model: WatchedModel) -> None:
    gone = deployed(model, "0", start=START - 3000, last=START - 2000, calls=10**6)
    main = deployed(model, "1", start=START - 1000, last=START + 50, calls=5000)
    canary = deployed(model, "2", start=START - 500, last=START + 50, calls=20)
    newest = deployed(model, "3", start=START, last=START + 50)
    assert select_baseline(deployment=newest, earlier=[gone, main, canary]) == main


def test_the_number_of_queries_does_not_grow_with_the_number_of_versions(
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


def test_a_healthy_version_has_priority_over_more_traffic(model: WatchedModel) -> None:
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


def test_a_pinned_version_has_priority(model: WatchedModel) -> None:
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


def test_without_a_concurrent_version_the_previous_one_is_chosen(model: WatchedModel) -> None:
    before = deployed(model, "1", start=START - 1000, last=START - 1)
    assert (
        select_baseline(
            deployment=deployed(model, "2", start=START, last=START + 50), earlier=[before]
        )
        == before
    )


def test_a_canary_that_was_stopped_long_before_is_not_the_replaced_version(
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


def test_an_earlier_short_job_of_the_same_version_is_not_its_baseline(
    model: WatchedModel,
) -> None:
    other = deployed(model, "1", start=START - 400, last=START - 390)
    same = deployed(model, "2", start=START - 200, last=START - 190)
    same.ended_minute = same.last_minute
    same.save()
    again = deployed(model, "2", start=START, last=START + 10)
    assert select_baseline(deployment=again, earlier=[other, same]) == other
    assert select_baseline(deployment=again, earlier=[same]) == same


def store_verdict(deployment: Deployment, kind: str) -> None:
    Verdict.objects.create(
        project=deployment.project,
        deployment=deployment,
        kind=kind,
        sentence="",
        evidence={},
        minute=START,
        created_at=clock.now(),
    )


def test_a_version_with_a_roll_back_verdict_is_skipped_if_there_is_another(
    model: WatchedModel,
) -> None:
    sound = deployed(model, "1", start=START - 2000, last=START - 600, calls=20)
    bad = deployed(model, "2", start=START - 1000, last=START + 50, calls=5000)
    newest = deployed(model, "3", start=START, last=START + 50)
    store_verdict(bad, "roll_back")
    assert select_baseline(deployment=newest, earlier=[sound, bad]) == sound
    assert select_baseline(deployment=newest, earlier=[bad]) == bad
