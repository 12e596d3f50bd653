"""A page without responses shows its last update at every scroll position, and removes the note at
the next response."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert

PHONE = {"width": 375, "height": 700}


@pytest.mark.parametrize("answer", ["none", "500"])
def test_on_a_phone_after_scrolling_down(
    sign_in: Callable[[User], Page], user: User, alert: Alert, complaints: list[str], answer: str
) -> None:
    def refuse(route: Route) -> None:
        if "hx-request" not in route.request.headers:
            route.continue_()
        elif answer == "none":
            route.abort("connectionrefused")
        else:
            route.fulfill(status=500, body="<h1>broken</h1>", content_type="text/html")

    page = sign_in(user)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.clock.install()
    page.reload()
    page.route("**/*", refuse)
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    note = page.locator("#stale")
    page.clock.run_for(40_000)
    expect(note).to_be_hidden()
    page.clock.run_for(20_000)
    expect(note).to_be_in_viewport(ratio=1)
    expect(note).to_contain_text("Connection lost.")
    expect(page.locator("table.ft")).to_contain_text("Roll back 2026.11.3")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.unroute("**/*")
    page.evaluate("window.htmx.trigger(document.body, 'shown')")
    expect(note).to_be_hidden()
    expect(page.locator("[data-live].stale")).to_have_count(0)
    assert all(
        "ERR_CONNECTION_REFUSED" in one or "htmx" in one or "500" in one for one in complaints
    ), complaints
    complaints.clear()


def test_an_ended_session_is_reported_after_scrolling_down(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    page.context.clear_cookies()
    page.evaluate("window.htmx.trigger(document.body, 'shown')")
    expect(page.get_by_role("alert")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("link", name="Sign in again")).to_be_in_viewport(ratio=1)
