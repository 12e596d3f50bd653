"""Filters, order and open rows of the Fleet page change the address and the table; the page itself
is not loaded again."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.fleet.models import WatchedModel

ROWS = "table.ft .mname"


def test_a_typed_filter_a_chip_and_the_back_button_change_the_table(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.evaluate("window.kept = true")
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)
    page.get_by_label("Filter models").fill("status:watch")
    expect(page.locator(ROWS)).to_have_text(["llm-7b-chat"])
    assert "q=status%3Awatch" in page.url
    page.get_by_role("link", name="Remove filter status: watch").click()
    expect(page.locator(ROWS)).to_have_count(3)
    expect(page.get_by_label("Filter models")).to_have_value("")
    page.go_back()
    expect(page.locator(ROWS)).to_have_text(["llm-7b-chat"])
    assert page.evaluate("window.kept")


def test_a_head_sorts_and_a_row_opens_in_its_place(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.evaluate("window.kept = true")
    page.locator("th.c-model .sort").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Model")
    expect(page.locator(ROWS)).to_have_text(["llm-7b-chat", "ranker", "vit-embed"])
    details = page.get_by_role("link", name="Details of vit-embed")
    details.focus()
    page.keyboard.press("Enter")
    expect(page.locator("tr.sentence")).to_have_count(3)
    expect(details).to_have_attribute("aria-expanded", "true")
    expect(details).to_be_focused()
    assert f"open={WatchedModel.objects.get(name='vit-embed').pk}" in page.url
    assert page.evaluate("window.kept")


def test_a_saved_view_contains_the_filter_that_was_typed(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.get_by_label("Filter models").fill("ranker")
    expect(page.locator(ROWS)).to_have_text(["ranker"])
    page.locator("summary", has_text="Save view").click()
    page.get_by_label("Name of the view").fill("Mine")
    page.get_by_role("button", name="Save view").click()
    expect(page.get_by_role("link", name="Mine")).to_have_attribute("aria-current", "page")
    expect(page.locator(ROWS)).to_have_text(["ranker"])
