"""Fixtures of the page tests: a project with a fleet, and signed-in users of each role."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.projects.models import Project, Role
from tests.dashboard.conftest import sign_in
from tests.dashboard.ui import stories


@pytest.fixture(autouse=True)
def _time_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops the clock of the dashboard for the test: a story counts its minutes from now, and a
    page that opens in the next minute would show other times and another ETag."""
    started = clock.unix()
    monkeypatch.setattr(clock, "unix", lambda: started)


@pytest.fixture
def alert(project: Project) -> Alert:
    """The open alert of a fleet of three models in `project`."""
    return stories.fleet(project, every=30)


@pytest.fixture
def as_role(make_user: Callable[..., User], project: Project) -> Callable[[Role], Client]:
    """A client that is signed in as a user with this role in `project`."""

    def enter(role: Role) -> Client:
        return sign_in(Client(), make_user(f"{role.value}-person", project, role))

    return enter
