"""Help pages in Chromium: every document fits a phone, a tablet and a desktop, in both themes, and
the browser has no complaint."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.ui.pages.help.documents import load_documents
from dashboard.ui.pages.help.pages import DECISIONS
from tests.browser.test_pages_are_open_to_everyone import BOTH, check

pytestmark = pytest.mark.timeout(900)
WIDTHS = (375, 820, 1440)
TOO_WIDE = "document.documentElement.scrollWidth > window.innerWidth"
SAMPLES = (
    "",
    "?q=retention",
    "dashboard/pages/",
    "dashboard/judge/results-faulty/",
    "dashboard/operations/install/",
    "dashboard/decisions/",
    "agents/",
)
"""The index, results, lists, the widest table, code, the longest list, and code with comments."""


def test_no_document_is_wider_than_the_window(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User
) -> None:
    page, found = sign_in(user), []
    for key in [key for key in load_documents() if not key.startswith(f"{DECISIONS}/")]:
        page.goto(f"{live_server.url}/help/{key}/")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            if page.evaluate(TOO_WIDE):
                found.append(f"{key} at {width} px")
    assert found == []


@BOTH
def test_help_pages_are_accessible(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    theme: str,
    window: dict[str, int],
) -> None:
    page = sign_in(user)
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size(window)  # type: ignore[arg-type]
    check(page, *(f"{live_server.url}/help/{sample}" for sample in SAMPLES))


def test_the_target_heading_of_a_link_is_below_the_bar(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User
) -> None:
    page = sign_in(user)
    page.set_viewport_size({"width": 1440, "height": 500})
    page.goto(f"{live_server.url}/help/dashboard/api/")
    page.get_by_role("navigation", name="On this page").get_by_role("link").last.click()
    page.wait_for_function("window.scrollY > 0")
    bar = page.locator("header.top").bounding_box()
    heading = page.locator(".doc :target").bounding_box()
    assert bar and heading and heading["y"] >= bar["y"] + bar["height"]


def test_the_search_field_opens_a_section_of_the_help(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User
) -> None:
    page = sign_in(user)
    page.goto(f"{live_server.url}/p/search-and-chat/")
    page.locator("#q").press_sequentially("kill switch")
    page.get_by_role("option", name="Kill switch").first.click()
    page.wait_for_url("**/help/**")
    assert page.locator("h1").is_visible()
