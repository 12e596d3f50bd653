"""Switch of the time zone: every time of a page in UTC or in the reader's zone, kept for the next
page. "Copy link" copies the absolute range."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert

KOLKATA = pytest.mark.browser_context_args(timezone_id="Asia/Kolkata")


def first_time(page: Page) -> tuple[str, str]:
    """The first time of the page as shown, and its UTC hour and minute."""
    shown = page.locator("main time[data-t=clock]").first
    at = shown.get_attribute("datetime") or ""
    return shown.inner_text()[-5:], at[11:16]


@KOLKATA
def test_the_choice_holds_for_every_time_and_for_the_next_page(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.goto(page.url.split("/p/")[0] + f"/p/{alert.project.slug}/alerts/{alert.number}/")
    shown, utc = first_time(page)
    assert shown != utc
    expect(page.locator("[data-zone]")).to_have_text("Times: UTC+05:30")
    page.get_by_role("button", name="UTC").click()
    expect(page.locator("[data-zone]")).to_have_text("Times: UTC")
    assert first_time(page)[0] == utc
    page.goto(page.url.split("/alerts/")[0] + f"/models/{alert.deployment.model_id}/")
    expect(page.get_by_role("button", name="UTC")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Local").click()
    expect(page.locator("[data-zone]")).to_have_text("Times: UTC+05:30")


@pytest.mark.browser_context_args(permissions=["clipboard-read", "clipboard-write"])
def test_a_copied_link_has_the_absolute_range(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.goto(
        page.url.split("/p/")[0]
        + f"/p/{alert.project.slug}/models/{alert.deployment.model_id}/?range=6h&env=production"
    )
    page.locator("[data-copy-link]").click()
    expect(page.locator("[data-copy-link]")).to_contain_text("Copied")
    link = urlsplit(page.evaluate("navigator.clipboard.readText()"))
    query = parse_qs(link.query)
    assert link.path == urlsplit(page.url).path
    assert {"from", "to", "env"} <= set(query) and "range" not in query
    assert query["from"][0] < query["to"][0]
