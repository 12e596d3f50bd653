"""Health mark of the bar: shown on every page of a project while no worker folds."""

from __future__ import annotations

from datetime import timedelta

from django.test import Client

from dashboard.common import clock
from dashboard.common.health import FOLD_EXPECTED_WITHIN_S
from dashboard.common.heartbeat import WORKER
from dashboard.common.models import Heartbeat
from dashboard.projects.models import Project

MARK = 'class="unhealthy"'
ALERTS = "/p/ranking/alerts/"


def beat(age_s: float) -> None:
    at = clock.now() - timedelta(seconds=age_s)
    Heartbeat.objects.update_or_create(
        name="worker", defaults={"kind": WORKER, "seen_at": clock.now(), "folded_at": at}
    )


def test_the_mark_links_to_the_health_page(signed_in: Client, project: Project) -> None:
    page = signed_in.get(ALERTS).content.decode()
    assert MARK in page
    assert "no worker has finished a fold in the last minute" in page


def test_a_working_pipeline_has_no_mark(signed_in: Client, project: Project) -> None:
    beat(FOLD_EXPECTED_WITHIN_S - 5)
    assert MARK not in signed_in.get(ALERTS).content.decode()
    beat(FOLD_EXPECTED_WITHIN_S + 5)
    assert MARK in signed_in.get(ALERTS).content.decode()
