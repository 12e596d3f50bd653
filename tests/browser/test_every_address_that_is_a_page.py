"""Every URL that returns a page, found from the routes: the browser has no complaint, axe finds
nothing, nothing overflows.

There is no list of pages: a new page is tested automatically."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from django.test import Client
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.projects.models import Project, Role
from dashboard.projects.services import key_create
from tests.browser.test_pages_are_open_to_everyone import BOTH
from tests.dashboard.access.belongings import addresses, belongings, filled, looked_at, wants
from tests.dashboard.conftest import sign_in as signed_in
from tests.dashboard.ui import factory

pytestmark = pytest.mark.timeout(1200)
LEAVES = ("account_logout",)
"""Routes that end the session of the test."""
OF_OTHERS = ("admin/",)
"""Pages of django-unfold with third-party markup: the browser must not complain, but axe does not
run."""
LEAST = 38
"""Minimum number of pages; far fewer pages mean that the walk is broken."""


@pytest.fixture
def pages(live_server: LiveServer, project: Project, user: User) -> list[tuple[str, str]]:
    """The route and the URL of every page that a staff member can open."""
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    key_create(project=project)
    ids = belongings(project, user, factory.person("guest", project, Role.VIEWER))
    client = signed_in(Client(), User.objects.get(pk=user.pk))
    return list(_pages(client, ids))


def _pages(client: Client, ids: dict[str, object]) -> Iterator[tuple[str, str]]:
    for name, route in addresses():
        if name in LEAVES or not wants(route) <= {*ids, "object_id", "path"}:
            continue
        address = filled(route, {**ids, "object_id": looked_at(route), "path": "ui/icon.svg"})
        answer = client.get(address)
        html = answer.headers.get("Content-Type", "").startswith("text/html")
        whole = (
            html and b"<!doctype html>" in answer.content[:100].lower()
        )  # a fragment is tested in its page
        if (
            answer.status_code == 200
            and whole
            and "attachment" not in answer.headers.get("Content-Disposition", "")
        ):
            yield route, address


def test_the_walk_finds_the_pages(pages: list[tuple[str, str]]) -> None:
    found = [address for route, address in pages if not route.startswith(OF_OTHERS)]
    assert len(found) >= LEAST, found
    for part in (
        "/",
        "/alerts/418/",
        "/setup/",
        "/health/",
        "/settings/members/",
        "/settings/audit/",
    ):
        assert f"/p/search-and-chat{part}" in found


@BOTH
def test_every_page(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    pages: list[tuple[str, str]],
    complaints: list[str],
    theme: str,
    window: dict[str, int],
) -> None:
    page = sign_in(user)
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size(window)  # type: ignore[arg-type]
    found: list[str] = []
    for route, address in pages:
        page.goto(live_server.url + address)
        page.wait_for_load_state("networkidle")
        found += [f"{address}: {complaint}" for complaint in complaints]
        complaints.clear()
        if not route.startswith(OF_OTHERS):
            found += [f"{address}: {fault}" for fault in _faults(page)]
    assert found == []


def _faults(page: Page) -> Iterator[str]:
    for violation in Axe().run(page).response["violations"]:
        yield f"{violation['id']} {[node['html'][:200] for node in violation['nodes']][:3]}"
    if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
        yield "is wider than the window"
