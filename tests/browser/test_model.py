"""The Model page in a real browser: it is accessible, and without scripts the numbers remain."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Made, Plan, charted
from tests.dashboard.ui.charts_story import compilations, finding, judged, rolled_back

PHONE, DESK = {"width": 375, "height": 800}, {"width": 1440, "height": 900}
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>{{ 7*7 }}\u202e"


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


def opened(page: Page, live_server: LiveServer, made: Made, query: str = "") -> Page:
    page.goto(live_server.url + made.url() + query)
    expect(page.locator("#trend-charts")).to_have_attribute("data-drawn", "4")
    return page


def test_the_page_is_accessible(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        for window in (PHONE, DESK):
            page.set_viewport_size(window)  # type: ignore[arg-type]
            opened(page, live_server, made)
            for summary in page.locator("details.twin summary").all():
                summary.click()
            violations = Axe().run(page).response["violations"]
            found = [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in violations]
            assert found == [], f"{theme} {window}"
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
                f"{theme} {window}"
            )


def test_without_scripts_the_numbers_are_a_table(
    browser: Browser,
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    made: Made,
) -> None:
    state = sign_in(user).context.storage_state()
    page = browser.new_context(java_script_enabled=False, storage_state=state).new_page()
    page.goto(live_server.url + made.url())
    page.locator("#trend-tables summary").click()
    page.get_by_role("link", name="as a page").click()
    table = page.get_by_role("region", name="Numbers of 2026.11.3")
    expect(table.get_by_role("row").nth(3)).to_contain_text("18")
    page.context.close()


def test_hostile_names_stay_text_and_inside_a_phone(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    made = charted(
        project, Plan(HOSTILE, start=60), Plan("v" * 200, start=40), name=HOSTILE + "m" * 120
    )
    judged(made, HOSTILE, "v" * 200)
    finding(made, "guard", HOSTILE * 3, HOSTILE, {HOSTILE: 3})
    compilations(made, "v" * 200, frame=HOSTILE, reason=HOSTILE, file=HOSTILE)
    page = sign_in(user)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    opened(page, live_server, made)
    assert page.locator("main img, main script:not([type='application/json'])").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
