"""The Model page in a real browser: charts show the reported values, one crosshair runs through all
charts, and without scripts the numbers remain."""

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
LIT = """canvas => { const d = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let lit = 0; for (let i = 3; i < d.length; i += 4) lit += d[i] > 0; return lit; }"""


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


def opened(page: Page, live_server: LiveServer, made: Made, query: str = "") -> Page:
    page.goto(live_server.url + made.url() + query)
    expect(page.locator("#trend-charts")).to_have_attribute("data-drawn", "12")
    return page


def ink(page: Page, chart: str) -> int:
    return int(page.locator(f'[data-chart="{chart}"] canvas').evaluate(LIT))


def test_charts_are_drawn_again_when_the_theme_changes(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    assert all(ink(page, key) > 200 for key in ("p50", "p99", "eager", "cold_start", "gpu_memory"))
    pixels = "canvas => canvas.toDataURL()"
    light = page.locator('[data-chart="p50"] canvas').evaluate(pixels)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "light => document.querySelector('[data-chart=\"p50\"] canvas').toDataURL() !== light",
        arg=light,
    )


def test_a_shade_has_room_above_its_line(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    top, high, line = page.locator(
        '[data-chart="eager"] canvas'
    ).evaluate("""canvas => { const chart = window.Chart.getChart(canvas);
      const most = (pick) => Math.max(...chart.data.datasets.flatMap(pick).filter((value) => value !== null));
      return [chart.scales.y.max, most((set) => set.high || []), most((set) => set.data.map((point) => point.y))]; }""")
    assert line < high <= top


def test_the_crosshair_reads_all_charts_at_one_time(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    reading = page.locator('[data-chart="eager"] [data-slot="2"] [data-value]')
    newest = reading.text_content()
    canvas = page.locator('[data-chart="p50"] canvas')
    box = canvas.bounding_box()
    assert box
    canvas.hover(position={"x": box["width"] * 0.5, "y": 60})
    expect(page.locator("[data-crosshair]")).to_be_visible()
    expect(reading).to_have_text("–")
    page.mouse.move(0, 0)
    expect(page.locator("[data-crosshair]")).to_be_hidden()
    expect(reading).to_have_text(newest or "")


def test_the_crosshair_moves_with_the_arrow_keys(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    page.locator("#trend-charts").focus()
    page.keyboard.press("ArrowLeft")
    first = page.locator("[data-crosshair-time]").text_content()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-crosshair-time]")).not_to_have_text(first or "")
    page.keyboard.press("Escape")
    expect(page.locator("[data-crosshair]")).to_be_hidden()


def test_the_page_is_accessible(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
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


def test_without_the_chart_library_the_tables_open_automatically(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    made: Made,
    complaints: list[str],
) -> None:
    page = sign_in(user)
    page.route("**/vendor/chart.js", lambda route: route.abort())
    page.goto(live_server.url + made.url())
    expect(page.locator("#trend-tables")).to_have_attribute("open", "")
    assert all("ERR_FAILED" in complaint for complaint in complaints)
    complaints.clear()


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
