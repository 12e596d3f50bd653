"""A browser without scripts: every page still shows its answer in words and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.fleet.models import Instance
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Made
from tests.dashboard.ui.charts_story import rolled_back


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


@pytest.fixture
def page(browser: Browser, sign_in: Callable[[User], Page], user: User) -> Iterator[Page]:
    """A signed-in person whose browser runs no script from then on."""
    context = browser.new_context(
        java_script_enabled=False, storage_state=sign_in(user).context.storage_state()
    )
    context.set_default_timeout(120_000)
    yield context.new_page()
    context.close()


def test_every_page_shows_its_answer(page: Page, live_server: LiveServer, made: Made) -> None:
    worse = made.versions["2026.11.3"]
    instance = Instance.objects.filter(version=worse).earliest("pk")
    project = f"/p/{made.project.slug}/"
    answers = {
        project: "ROLL BACK",
        made.url(): "its p50 is 31% slower",
        made.url("weeks/"): "Not enough history",
        made.pair("2026.11.2", "2026.11.3"): "REGRESSED",
        made.url(f"versions/{worse.pk}/"): "Recompiles per frame",
        made.url("startup/"): "Warm-up forecast",
        made.url("instances/"): instance.host,
        made.url(
            f"instances/{instance.instance_id}/"
        ): "Some frames run eager until the process restarts.",
        project + "findings/": "candidates.size(0)",
        project + "setup/": "Receiving reports.",
        project + "health/": "DEGRADED",
    }
    for address, answer in answers.items():
        page.goto(live_server.url + address)
        main = page.locator("main")
        assert answer in main.inner_text().replace("\u00a0", " "), address
    for address in (
        project,
        made.pair("2026.11.2", "2026.11.3"),
        made.url("instances/"),
        project + "findings/",
    ):
        page.goto(live_server.url + address)
        expect(page.locator("main table tbody tr").first).to_be_visible()


def test_no_page_promises_content_that_needs_a_script(
    page: Page, live_server: LiveServer, made: Made
) -> None:
    project = f"/p/{made.project.slug}/"
    for address in (
        project,
        made.pair("2026.11.2", "2026.11.3"),
        made.url("instances/"),
        project + "alerts/",
    ):
        page.goto(live_server.url + address)
        text = page.locator("main").inner_text()
        assert (
            "updated just now" not in text
            and "Loading…" not in text
            and "Loading chart" not in text
        ), address
        assert page.locator("[data-plot]:visible, [data-panel]:visible").count() == 0, (
            "an empty box in place of a chart"
        )
    page.goto(live_server.url + made.url())
    assert "Charts need JavaScript" in page.locator("main").inner_text()
    assert page.goto(live_server.url + made.url("numbers/")).status == 200  # type: ignore[union-attr]
    expect(page.locator("main table tbody tr").first).to_be_visible()
    page.goto(live_server.url + project)
    assert "JavaScript is off. Open the comparison page." in page.locator("main").inner_text()


def test_the_comparison_of_weeks_is_one_link_away(
    page: Page, live_server: LiveServer, made: Made
) -> None:
    page.goto(live_server.url + made.url())
    page.get_by_role("navigation", name="ranker").get_by_role("link", name="28-day").click()
    expect(
        page.get_by_role("table", name="ranker in the last 28 days and the previous 28 days")
    ).to_be_visible()
