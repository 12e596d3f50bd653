"""A fleet, a test clock that only moves on demand, and a fake Slack server that the server's
operator allowed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from dashboard.alerts.models import Channel
from dashboard.alerts.services import channel_create
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, Time, fleet_make
from tests.dashboard.alerts.slack_server import StandIn, stand_in


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """`time.go(60)` advances the clock of the whole dashboard by one minute."""
    standing = Time()
    monkeypatch.setattr(clock, "unix", standing)
    return standing


@pytest.fixture
def slack(settings: Settings) -> Iterator[StandIn]:
    """A local server that replaces Slack."""
    with stand_in() as server:
        settings.OUTBOUND_ALLOW = (f"127.0.0.1:{server.port}",)
        yield server


@pytest.fixture
def channel(project: Project, slack: StandIn, time: Time) -> Channel:
    """The project's Slack channel."""
    return channel_create(
        project=project, kind="slack", name="#ranking", address=slack.url, actor_name="tests"
    )


@pytest.fixture
def fleet(project: Project, time: Time) -> Fleet:
    """A model called `ranker`."""
    return fleet_make(project)


@pytest.fixture
def old(fleet: Fleet) -> Deployment:
    """Version 2026.11.2, live."""
    return fleet.deploy("2026.11.2")


@pytest.fixture
def new(fleet: Fleet, old: Deployment, time: Time) -> Deployment:
    """Version 2026.11.3, live alongside 2026.11.2 since an hour later."""
    time.go(3600)
    return fleet.deploy("2026.11.3")
