"""The steps of a person on call: sign in, see the worst model first, open its alert, acknowledge
it."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.regressions.models import Verdict
from tests.dashboard.ui import stories


def test_from_signing_in_to_an_acknowledged_alert(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    first, sentence = (page.locator("table.ft tbody tr").nth(place) for place in (0, 1))
    expect(first).to_contain_text("ROLL BACK")
    expect(sentence).to_contain_text(stories.SLOWER)
    first.get_by_role("link", name="1 open").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(alert.title)
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("status")).to_contain_text("Assigned to you.")
    page.get_by_label("Note").fill("rolling back")
    page.get_by_role("button", name="Add note").click()
    expect(page.locator(".act")).to_contain_text("rolling back")
    alert.refresh_from_db()
    assert alert.state == "acknowledged"
    page.locator("summary", has_text="More").click()
    page.get_by_role("button", name="Resolve").click()
    expect(page.locator(".ameta")).to_contain_text("Resolved")
    alert.refresh_from_db()
    assert alert.state == "resolved"


def test_a_poll_redraws_only_when_something_changed(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.evaluate("document.querySelector('table.ft').dataset.kept = '1'")
    with page.expect_response(lambda response: response.status == 304):
        page.evaluate("htmx.trigger(document.body, 'shown')")
    expect(page.locator("table.ft[data-kept]")).to_have_count(1)
    for _ in range(2):
        page.evaluate("document.dispatchEvent(new CustomEvent('cw:checked'))")
        expect(page.locator("[data-live].stale")).to_have_count(0)
    Verdict.objects.filter(current=True, kind="roll_back").update(sentence="It became worse.")
    page.evaluate("htmx.trigger(document.body, 'shown')")
    expect(page.locator("table.ft tr.sentence").first).to_contain_text("It became worse.")
    expect(page.locator("table.ft[data-kept]")).to_have_count(0)


def test_the_keyboard_reaches_every_control(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("summary.avatar").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
    expect(page.locator("summary.avatar")).to_be_focused()


def test_signing_out_ends_the_session(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.locator("summary.avatar").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
