"""The tabs of a model in a real browser: one header, sticky on a wide screen, on every tab; each tab
is accessible, fits every screen, and keeps the parameters of the address."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.charts_factory import Made, Plan, charted
from tests.dashboard.ui.charts_story import finding, judged, rolled_back

TABS = ("", "versions/", "instances/", "findings/", "findings/?view=all", "weeks/")
WIDTHS = (320, 375, 820, 1440, 2560)
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>{{ 7*7 }}\u202e"
FITS = "document.documentElement.scrollWidth <= window.innerWidth"


@pytest.fixture
def made(project: Project) -> Made:
    made = rolled_back(project)
    Alert.objects.create(
        project=project,
        deployment=Verdict.objects.get().deployment,
        number=418,
        severity="roll_back",
        worst="roll_back",
        title="ranker 2026.11.3: p50 is 31% slower",
        opened_at=clock.now(),
    )
    return made


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_is_accessible_and_fits_every_screen(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made, tab: str
) -> None:
    page = sign_in(user)
    page.goto(live_server.url + made.url(tab))
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(FITS), width
    for width, theme in ((375, "dark"), (1440, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
        violations = Axe().run(page).response["violations"]
        found = [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in violations]
        assert found == [], f"{theme} {width}"


def test_no_tab_is_higher_than_two_screens(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    page.set_viewport_size({"width": 1440, "height": 900})
    for tab in TABS:
        page.goto(live_server.url + made.url(tab))
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollHeight") <= 1700, tab


def test_the_header_stays_in_view_and_acknowledges_in_one_click(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    page.goto(live_server.url + made.url())
    page.mouse.wheel(0, 600)
    acknowledge = page.get_by_role("button", name="Acknowledge")
    expect(acknowledge).to_be_in_viewport()
    acknowledge.click()
    page.goto(live_server.url + made.url("findings/"))
    expect(page.locator(".mhead .who")).to_contain_text("acknowledged")
    expect(page.locator(".mhead .who")).to_contain_text("by mara")
    expect(page.get_by_role("button", name="Acknowledge")).to_have_count(0)


def test_the_version_and_the_range_survive_a_change_of_tab(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    page.goto(live_server.url + made.url("?range=24h"))
    page.locator(".pairs summary").click()
    page.locator(".pairs").get_by_role("link", name="2026.11.2").first.click()
    page.get_by_role("navigation", name="ranker").get_by_role("link", name="Instances").click()
    assert "range=24h" in page.url
    assert f"={made.versions['2026.11.2'].pk}" in page.url
    expect(page.locator(".mhead [data-ranges] [aria-current]")).to_have_text("24\u00a0h")


def test_hostile_names_stay_text_on_every_tab(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    long = "v" * 200
    made = charted(project, Plan(HOSTILE, start=60), Plan(long, start=40), name=HOSTILE + "m" * 120)
    judged(made, HOSTILE, long)
    finding(made, "guard", HOSTILE * 3, HOSTILE, {HOSTILE: 3})
    page = sign_in(user)
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    for tab in TABS:
        page.goto(live_server.url + made.url(tab))
        assert page.locator("main img, main script:not([type='application/json'])").count() == 0
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(FITS), f"{tab} {width}"


def test_without_scripts_every_tab_is_reached(
    browser: Browser,
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    made: Made,
) -> None:
    state = sign_in(user).context.storage_state()
    page = browser.new_context(java_script_enabled=False, storage_state=state).new_page()
    page.goto(live_server.url + made.url())
    for name in ("Versions", "Instances", "Findings", "28-day"):
        page.get_by_role("navigation", name="ranker").get_by_role("link", name=name).click()
        current = page.locator(".mhead .tabs [aria-current]")
        expect(current).to_contain_text(name)
    page.context.close()


def test_every_column_of_the_versions_table_fits_a_page_of_1280_px(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(live_server.url + made.url("versions/"))
    table = page.get_by_role("region", name="Table of versions")
    assert table.evaluate("box => box.scrollWidth <= box.clientWidth")
