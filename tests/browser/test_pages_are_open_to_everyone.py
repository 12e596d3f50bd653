"""Every page in both themes and on a phone: axe finds nothing, nothing sticks out, the browser has no complaint."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.projects.models import Project

PHONE, DESK = {"width": 375, "height": 800}, {"width": 1440, "height": 900}


def addresses(alert: Alert) -> list[str]:
    return [
        "/p/search-and-chat/",
        "/p/search-and-chat/alerts/",
        "/p/search-and-chat/alerts/grades/",
        f"/p/search-and-chat/alerts/{alert.number}/",
        "/p/search-and-chat/setup/",
        "/p/search-and-chat/health/",
        "/p/search-and-chat/settings/judging/",
        "/p/search-and-chat/settings/messages/",
    ]


def check(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_load_state("networkidle")
    violations = Axe().run(page).response["violations"]
    assert [(found["id"], [node["html"] for node in found["nodes"]][:3]) for found in violations] == [], address
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{address} is wider than the window"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("window", [PHONE, DESK], ids=["phone", "desk"])
def test_pages_with_content(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, alert: Alert, theme: str, window: dict[str, int]
) -> None:
    page = sign_in(user)
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size(window)  # type: ignore[arg-type]
    for address in addresses(alert):
        check(page, live_server.url + address)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_empty_pages(sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project, theme: str) -> None:
    page = sign_in(user)
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    for part in ("", "alerts/", "alerts/grades/", "setup/", "health/", "settings/judging/", "settings/messages/"):
        check(page, f"{live_server.url}/p/search-and-chat/{part}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_outside_a_project(page: Page, live_server: LiveServer, complaints: list[str], theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    check(page, f"{live_server.url}/accounts/login/")
    check(page, f"{live_server.url}/no/such/page/")
    assert all("404" in complaint for complaint in complaints)
    complaints.clear()


def test_long_names_do_not_break_a_phone(sign_in: Callable[[User], Page], live_server: LiveServer, user: User, alert: Alert) -> None:
    deployment = alert.deployment
    deployment.model.name, deployment.version.name = "m" * 200, "v" * 200
    deployment.model.save()
    deployment.version.save()
    page = sign_in(user)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for address in addresses(alert):
        check(page, live_server.url + address)
