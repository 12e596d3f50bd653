"""A real Chromium against a live server: a page fixture that records every console error and every
violation of the content policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import BrowserContext, Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.projects.models import Project, Role
from tests.dashboard.conftest import cheap_passwords
from tests.dashboard.ui import factory, stories
from tests.flow.database_templates import use_template
from tests.machine import chromium

__all__ = ["cheap_passwords"]
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = (
    "1"  # Playwright's event loop runs in the thread that sets up the database
)

QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SLOWEST = 120_000
"""Timeout for a page or an element in milliseconds: long, since a busy machine is slow."""
BREACHES = """document.addEventListener('securitypolicyviolation', (event) => {
  console.error(`CSP ${event.violatedDirective} ${event.blockedURI}`);
});"""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks all tests of this folder."""
    item.add_marker(pytest.mark.needs("Chromium"))


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """A migrated file, as in production: the live server has its own threads."""
    use_template(settings.DATABASES["default"])


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Keeps the copied file; the run's folder is removed anyway."""
    return True


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """Uses the system's Chromium if it exists, otherwise the one that Playwright installed."""
    return {"args": QUIET} | ({"executable_path": found} if (found := chromium()) else {})


@pytest.fixture
def complaints(context: BrowserContext) -> Iterator[list[str]]:
    """All browser complaints about any page of the test; the list must be empty at the end."""
    found: list[str] = []
    context.set_default_timeout(SLOWEST)
    context.add_init_script(BREACHES)
    context.on(
        "console",
        lambda message: (
            found.append(f"{message.type}: {message.text}")
            if message.type in ("error", "warning")
            else None
        ),
    )
    context.on("weberror", lambda error: found.append(f"{error.error}"))
    yield found
    assert found == []


@pytest.fixture
def project(live_server: LiveServer) -> Project:
    """A project named Search and chat, behind the live server."""
    return factory.project()


@pytest.fixture
def user(project: Project) -> User:
    """An administrator of `project`."""
    return factory.person("mara", project, Role.ADMIN)


@pytest.fixture
def alert(project: Project) -> Alert:
    """The open alert of a sample fleet with three models in `project`."""
    return stories.fleet(project, every=30)


@pytest.fixture
def sign_in(page: Page, live_server: LiveServer, complaints: list[str]) -> Callable[[User], Page]:
    """`sign_in(user)` fills in the sign-in page like a person."""

    def fill(user: User) -> Page:
        page.goto(f"{live_server.url}/accounts/login/")
        page.get_by_label("Name").fill(user.get_username())
        page.get_by_label("Password").fill(factory.PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda address: "/accounts/" not in address)
        return page

    return fill
