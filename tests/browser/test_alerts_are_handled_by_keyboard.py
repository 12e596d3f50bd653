"""Alerts are handled with single keys, shown on the buttons; an action is undone from its message,
and the list acts on selected alerts and keeps the selection over an update."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.projects.models import Project, Role
from tests.dashboard.ui import factory


def opened(page: Page, live_server: LiveServer, alert: Alert) -> Page:
    page.goto(f"{live_server.url}/p/{alert.project.slug}/alerts/{alert.number}/")
    return page


def state(alert: Alert) -> str:
    alert.refresh_from_db()
    return alert.state


def test_keys_act_and_undo_restores(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, alert: Alert
) -> None:
    page = opened(sign_in(user), live_server, alert)
    for key, name in (("a", "Acknowledge"), ("s", "Snooze 1h"), ("f", "False alarm")):
        expect(page.get_by_role("button", name=name)).to_have_attribute("aria-keyshortcuts", key)
    page.get_by_label("Note").fill("a")
    page.get_by_label("Note").press("s")
    page.locator("h1").click()
    page.keyboard.press("Control+f")
    page.keyboard.press("Alt+s")
    assert state(alert) == "open", "keys in a field and with a modifier do nothing"
    page.keyboard.press("f")
    toast = page.locator("[data-toast]")
    expect(toast).to_contain_text("Marked as false positive.")
    assert state(alert) == "resolved"
    toast.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("Undone.")
    assert state(alert) == "open"
    page.keyboard.press("s")
    expect(page.locator(".ameta")).to_contain_text("Snoozed until")
    page.keyboard.press("a")
    expect(page.locator(".ameta")).to_contain_text("Acknowledged by mara")
    page.get_by_label("Note").fill("rolling back")
    page.get_by_role("button", name="Add note").click()
    expect(page.locator(".act")).to_contain_text("“rolling back”")
    page.keyboard.press("c")
    page.wait_for_url("**/compare?*")


def test_a_viewer_has_no_keys(
    sign_in: Callable[[User], Page], live_server: LiveServer, project: Project, alert: Alert
) -> None:
    page = opened(sign_in(factory.person("vic", project, Role.VIEWER)), live_server, alert)
    expect(page.locator(".acts")).to_contain_text("Actions require the Operator role")
    page.keyboard.press("a")
    page.keyboard.press("f")
    assert state(alert) == "open"


def test_selected_alerts_are_acted_on_at_once(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, alert: Alert
) -> None:
    second = Alert.objects.get(pk=alert.pk)
    second.pk, second.number, second.cause = None, alert.number + 1, "other"
    second.save(force_insert=True)
    page = sign_in(user)
    page.goto(f"{live_server.url}/p/{alert.project.slug}/alerts/")
    bar = page.locator("#bulk")
    expect(bar.get_by_role("button", name="Resolve")).to_be_disabled()
    page.get_by_label("Select the group").check()
    expect(bar).to_contain_text("2 selected")
    page.get_by_label(f"Select A-{second.number}").uncheck()
    expect(bar).to_contain_text("1 selected")
    Alert.objects.filter(pk=second.pk).update(title="ranker: changed")
    page.evaluate("htmx.trigger(document.body, 'shown')")
    expect(page.locator(".al")).to_contain_text("ranker: changed")
    expect(page.get_by_label(f"Select A-{alert.number}")).to_be_checked()
    expect(bar).to_contain_text("1 selected")
    page.keyboard.press("a")
    expect(page.locator("[data-toast]")).to_contain_text("1\u00a0alert acknowledged.")
    assert (state(alert), state(second)) == ("acknowledged", "open")
    page.locator("[data-toast]").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("1\u00a0alert restored.")
    page.get_by_role("button", name="Acknowledge all 2").click()
    expect(page.locator("[data-toast]")).to_contain_text("2\u00a0alerts acknowledged.")
    assert (state(alert), state(second)) == ("acknowledged", "acknowledged")


def test_a_filter_applies_at_once_and_its_chip_removes_it(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.goto(f"{live_server.url}/p/{alert.project.slug}/alerts/")
    page.get_by_label("Verdict", exact=True).select_option("watch")
    page.wait_for_url("**/alerts/?verdict=watch")
    expect(page.get_by_role("heading", name="No matching alerts")).to_be_visible()
    page.get_by_label("Remove the filter Verdict: WATCH").click()
    expect(page.locator(".al")).to_contain_text(alert.title)
