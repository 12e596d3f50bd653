"""A verdict names its environment while its model also runs in another one."""

from __future__ import annotations

import pytest

from dashboard.common import clock
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.due_deployments import name_environment

pytestmark = pytest.mark.django_db
START = 29_900_000


def deployed(
    project: Project, model: str, environment: str, ended: int | None = None
) -> Deployment:
    seen = {"first_seen_at": clock.now(), "last_seen_at": clock.now()}
    found, _ = WatchedModel.objects.get_or_create(project=project, name=model, defaults=seen)
    version, _ = ModelVersion.objects.get_or_create(
        project=project, model=found, name="v1", defaults=seen
    )
    return Deployment.objects.create(
        project=project,
        model=found,
        version=version,
        environment=environment,
        started_minute=START,
        last_minute=START + 50,
        ended_minute=ended,
    )


def test_an_environment_next_to_a_live_one_is_named(project: Project) -> None:
    ours = deployed(project, "ranker", "production")
    deployed(project, "ranker", "staging")
    assert name_environment(ours) == "production"


@pytest.mark.parametrize(
    ("model", "environment", "ended"),
    [("other", "staging", None), ("ranker", "staging", START + 50)],
    ids=["another model", "an environment that has ended"],
)
def test_the_only_live_environment_is_not_named(
    project: Project, model: str, environment: str, ended: int | None
) -> None:
    ours = deployed(project, "ranker", "production")
    deployed(project, model, environment, ended)
    assert name_environment(ours) == ""
