"""Pages in a real browser: nothing moves while they load, and on a phone the Model page starts with
the answer and shows four charts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Made
from tests.dashboard.ui.charts_story import rolled_back

PHONE, DESK = {"width": 375, "height": 800}, {"width": 1440, "height": 900}
STILL = 0.02
"""Cumulative layout shift; browsers rate up to 0.1 as good."""
SHIFTS = """window.shifted = 0;
new PerformanceObserver((list) => list.getEntries().forEach((entry) => { if (!entry.hadRecentInput) window.shifted += entry.value; }))
  .observe({ type: 'layout-shift', buffered: true });"""
TALLEST = 7000
"""Height limit in pixels of the Model page on a phone with all data; unfolded, the page was three
times as high."""


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


def test_nothing_moves_while_a_page_loads_and_a_phone_shows_the_answer_first(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    page.add_init_script(SHIFTS)
    for size in (DESK, PHONE):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        for address in (
            f"/p/{made.project.slug}/",
            made.pair("2026.11.2", "2026.11.3"),
            made.url(),
        ):
            page.goto(live_server.url + address)
            page.wait_for_load_state("networkidle")
            assert page.evaluate("window.shifted") < STILL, (address, size)
    expect(page.locator("#trend-charts")).to_have_attribute("data-drawn", "4")
    assert page.evaluate("document.documentElement.scrollHeight") < TALLEST
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

    expect(page.locator("[data-chart]:visible")).to_have_count(4)
    page.get_by_text("More metrics").click()
    expect(page.locator("[data-chart]:visible")).to_have_count(14)
