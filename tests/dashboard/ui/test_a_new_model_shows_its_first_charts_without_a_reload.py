"""A model whose first minute is incomplete: the page states this, polls, and reloads when data is
available."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.projects.models import Project
from tests.dashboard.ui.factory import Shape, model

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def young(project: Project, *, minutes: int) -> WatchedModel:
    """A model that first reported this number of minutes ago and has no counted calls."""
    now, minute = clock.now(), clock.minute_of(clock.unix()) - minutes
    seen = {
        "project": project,
        "first_seen_at": now - timedelta(minutes=minutes),
        "last_seen_at": now,
    }
    made = WatchedModel.objects.create(name="try-it", **seen)
    version = ModelVersion.objects.create(
        model=made, name="1", last_minute=minute, revision=1, **seen
    )
    Deployment.objects.create(
        project=project,
        model=made,
        version=version,
        environment="production",
        started_minute=minute,
        last_minute=minute,
    )
    return made


def test_the_page_polls_and_reloads_when_minutes_are_available(
    signed_in: Client, project: Project
) -> None:
    made = young(project, minutes=1)
    html = signed_in.get(f"/p/ranking/models/{made.pk}/").content.decode()
    assert "Reports are arriving; processing the first minute" in html
    assert "No report in the last" not in html
    waiting = signed_in.get(f"/p/ranking/models/{made.pk}.json", headers=HTMX)
    assert (waiting.status_code, waiting.headers.get("HX-Refresh")) == (204, None)
    reporting = model(project, "ranker", [Shape("7", 0.01, 100, 30, instances=1)], every=10)
    told = signed_in.get(f"/p/ranking/models/{reporting.pk}.json", headers=HTMX)
    assert (told.status_code, told.headers.get("HX-Refresh")) == (204, "true")


def test_the_page_of_a_model_that_has_been_silent_for_long_does_not_poll(
    signed_in: Client, project: Project
) -> None:
    made = young(project, minutes=500)
    html = signed_in.get(f"/p/ranking/models/{made.pk}/").content.decode()
    assert "No report in the last" in html
    assert "processing the first minute" not in html


def test_the_page_does_not_poll_for_a_past_range(signed_in: Client, project: Project) -> None:
    made = young(project, minutes=1)
    html = signed_in.get(
        f"/p/ranking/models/{made.pk}/?range=1h&until={clock.minute_of(clock.unix()) - 600}"
    ).content.decode()
    assert "processing the first minute" not in html


def test_creating_a_key_stays_on_the_setup_page(signed_in: Client, project: Project) -> None:
    html = signed_in.post("/p/ranking/setup/keys/add/", {"name": "x"}).content.decode()
    assert html.count('aria-current="true"') == 1
    assert re.search(r'data-go="e"\s+aria-current="true"', html), "Setup is a tab of Settings"
