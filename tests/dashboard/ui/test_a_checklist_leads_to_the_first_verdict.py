"""Checklist of the Setup page: finished steps, missing steps, and the time of the first verdict."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from dashboard.alerts.models import Channel, RollbackGuide
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project, Role
from dashboard.projects.services import key_create
from dashboard.ui.pages.setup.checklist import FIRST_ALARM_MINUTES, read_checklist
from tests.dashboard.ui.factory import Shape, model

SETUP = "/p/ranking/setup/"


def list_open(project: Project) -> list[str]:
    return [step.title for step in read_checklist(project=project).steps if not step.done]


def test_an_empty_project_has_six_open_steps(signed_in: Client, project: Project) -> None:
    assert list_open(project) == [
        "API key",
        "First report",
        "Notification channel",
        "Runbook",
        "Second version",
        "First verdict",
    ]
    page = signed_in.get(SETUP).content.decode()
    assert "0 of 6 steps finished" in page
    assert re.search(r"<details[^>]*checklist-card[^>]* open", page)


def test_a_key_counts_from_its_first_use(project: Project) -> None:
    key, _ = key_create(project=project, kind="ing", name="job", actor=None, address=None)
    assert list_open(project)[0] == "API key"
    type(key).objects.filter(pk=key.pk).update(last_used_at=clock.now())
    assert list_open(project)[0] == "First report"


def test_a_disabled_channel_does_not_count(project: Project) -> None:
    channel = Channel.objects.create(
        project=project, kind="slack", name="x", enabled=False, created_at=clock.now()
    )
    assert "Notification channel" in list_open(project)
    Channel.objects.filter(pk=channel.pk).update(enabled=True)
    assert "Notification channel" not in list_open(project)
    RollbackGuide.objects.create(project=project, model_name="ranker", text="argo")
    assert "Runbook" not in list_open(project)


def test_the_first_verdict_has_its_needs_and_its_earliest_time(project: Project) -> None:
    model(project, "ranker", [Shape("1", 0.01, 100, 90, instances=1)], every=10)
    step = read_checklist(project=project).steps[-1]
    assert step.earliest_at is None
    assert "calls of both versions" in step.detail
    model(project, "encoder", [Shape("1", 0.01, 100, 90), Shape("2", 0.01, 100, 30)], every=10)
    checklist = read_checklist(project=project)
    assert "Second version" not in list_open(project)
    newest = Deployment.objects.filter(version__model__name="encoder").latest("started_minute")
    assert checklist.steps[-1].earliest_at == clock.at_minute(
        newest.started_minute + FIRST_ALARM_MINUTES
    )


def test_a_viewer_gets_no_link_to_a_step_of_admins(
    as_role: Callable[[Role], Client], project: Project
) -> None:
    page = as_role(Role.VIEWER).get(SETUP).content.decode()
    assert "Write runbook" not in page
    assert "Instrument a job" in page
