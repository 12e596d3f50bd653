"""Scripted features of all pages: search, the sheet of shortcuts, a time span dragged in a chart,
and the end of a session."""

from collections.abc import Callable

from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import HEALTHY, WORSE, charted


def test_search_shortcuts_zoom_and_an_ended_session(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    made = charted(project, HEALTHY, WORSE)
    page = sign_in(user)
    page.keyboard.press("/")
    page.keyboard.type("rank")
    expect(page.locator("#found a").first).to_contain_text("ranker")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{made.url()}")
    expect(page.locator("#trend-charts")).to_have_attribute("data-drawn", "4")

    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")

    box = page.locator('[data-chart="p50"] [data-plot]').bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 40, steps=4)
    page.mouse.up()
    page.wait_for_url("**from=**")
    expect(page.locator("#trend-charts")).to_have_attribute("data-drawn", "4")

    with page.expect_download() as saved:
        page.locator('[data-chart="p50"] .save summary').click()
        page.get_by_role("button", name="PNG").first.click()
    assert saved.value.suggested_filename.endswith(".png")

    page.goto(f"{live_server.url}/p/search-and-chat/")
    page.context.clear_cookies()
    page.evaluate("window.htmx.trigger(document.body, 'shown')")
    expect(page.get_by_role("alert")).to_contain_text("Your session has expired")
    expect(page.locator("[data-live]")).to_have_text("signed out, not updating")
