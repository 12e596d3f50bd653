"""Settings and Health show the effective quota of a project, both a configured quota and the
default."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from compilewatch.wire.messages import Request
from django.test import Client

from dashboard.projects.models import Project
from dashboard.projects.services import quota_set

pytestmark = pytest.mark.django_db


def page(client: Client, project: Project, place: str) -> str:
    return " ".join(client.get(f"/p/{project.slug}/{place}").content.decode().split())


def test_the_default_quotas_are_shown(signed_in: Client, project: Project) -> None:
    assert "<dt>Queued reports</dt><dd>200,000 " in page(signed_in, project, "settings/data/")
    assert "this project 0, quota 200,000" in page(signed_in, project, "health/")


def test_configured_quotas_are_shown(
    signed_in: Client,
    project: Project,
    make_request: Callable[..., Request],
    store_reports: Callable[..., object],
) -> None:
    quota_set(
        project=project, changes={"reports_waiting": 40, "reports_per_second": 7}, actor_name="rate"
    )
    store_reports(make_request(minutes=3))
    text = page(signed_in, project, "settings/data/")
    assert "<dd>7 <small" in text and "<dt>Queued reports</dt><dd>40 " in text
    health = page(signed_in, project, "health/")
    assert "this project 3, quota 40" in health and "quota 7 per second" in health
