"""Workers that detect the same silence at the same moment lock the project in turn: one alert, and
one message per channel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from dashboard.alerts.models import Alert, Channel, Delivery
from dashboard.alerts.services.silence import project_watch
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Time, fleet_make

pytestmark = pytest.mark.django_db(transaction=True)


def watch(project: Project) -> int:
    try:
        return project_watch(project, may_open=True)
    finally:
        connection.close()


def test_four_workers_open_one_alert(project: Project, channel: Channel, time: Time) -> None:
    for name in ("ranker", "chat"):
        fleet = fleet_make(project, name)
        deployment = fleet.deploy("1")
        for number in range(4):
            fleet.run(deployment, f"{name}-{number}")
    time.go(240)
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(watch, [project] * 4)) == 1
    assert Alert.objects.get().cause == "fleet_silence"
    assert Delivery.objects.count() == 1
