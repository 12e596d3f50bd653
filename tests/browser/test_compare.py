"""The Compare page in a real browser: Plotly draws under the strict content policy, rows align with
the table, hostile names stay text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.fleet.models import Instance, Stratum
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Made, Plan, charted
from tests.dashboard.ui.charts_story import judged, rolled_back

PHONE, DESK = {"width": 375, "height": 800}, {"width": 1440, "height": 900}
HOSTILE = '<b>bold</b><a href="javascript:alert(1)">x</a>&lt;i&gt;<br>%{x}'


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


def opened(page: Page, live_server: LiveServer, made: Made, drawn: int = 6) -> Page:
    page.goto(live_server.url + made.url("compare"))
    page.locator(".draw").first.scroll_into_view_if_needed()
    # Chromium compiles Plotly first: two seconds alone, ten in parallel with other tests.
    expect(page.locator("body")).to_have_attribute("data-drawn", str(drawn), timeout=30_000)
    return page


def test_intervals_instances_and_distributions_are_drawn(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    expect(page.locator("#intervals .points path")).to_have_count(2)  # p50 and p99
    expect(page.locator("#strip .points path")).to_have_count(16)
    expect(page.locator("[data-panel] .js-line")).to_have_count(8)
    expect(page.locator("#intervals")).to_contain_text("0% to 28")
    assert page.locator(".modebar").count() == 0


def test_rows_of_the_plot_align_with_rows_of_the_table(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    page.set_viewport_size(DESK)  # type: ignore[arg-type]
    opened(page, live_server, made)
    row, mark = (
        page.locator(".evi tbody tr").first.bounding_box(),
        page.locator("#intervals .points path").first.bounding_box(),
    )
    assert row and mark
    assert abs((row["y"] + row["height"] / 2) - (mark["y"] + mark["height"] / 2)) <= 3


def test_versions_are_chosen_and_swapped(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    page.get_by_role("link", name="Swap versions").click()
    expect(page.get_by_text("No verdict for")).to_be_visible()
    page.get_by_role("link", name="View the original comparison").click()
    expect(page.locator("#intervals")).to_be_visible()
    page.get_by_label("Baseline").select_option(label="2026.10.9")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("The versions did not run at the same time")).to_be_visible()


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


def test_hostile_names_stay_text_in_every_label(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    made = charted(
        project, Plan(HOSTILE, start=60), Plan("w" * 200, p50=0.02, start=40), name=HOSTILE
    )
    Stratum.objects.filter(gpu="NVIDIA H200").update(gpu=HOSTILE)
    Instance.objects.update(host=HOSTILE)
    judged(made, HOSTILE, "w" * 200)
    page = sign_in(user)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    opened(page, live_server, made)
    assert page.locator("svg a, svg .annotation-text tspan[style*='bold'], main img").count() == 0
    assert "<b>bold</b>" in (page.locator("#strip").text_content() or "").replace("\u200b", "")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_without_the_chart_library_the_tables_open_automatically(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    made: Made,
    complaints: list[str],
) -> None:
    page = sign_in(user)
    page.route("**/vendor/plotly.min.js", lambda route: route.abort())
    page.goto(live_server.url + made.url("compare"))
    page.locator("#strip").scroll_into_view_if_needed()
    expect(page.locator("#strip")).to_contain_text("did not load")
    expect(page.get_by_role("region", name="p50 per instance, as a table")).to_be_visible()
    assert all("ERR_FAILED" in complaint for complaint in complaints)
    complaints.clear()


def test_the_chart_library_is_fetched_when_a_chart_comes_into_view_and_nothing_moves(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page, fetched = sign_in(user), []
    page.on(
        "request", lambda request: fetched.append(request.url) if "plotly" in request.url else None
    )
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(live_server.url + made.url("compare"), wait_until="networkidle")
    assert fetched == []
    expect(page.locator("#strip")).to_have_text("Loading chart…")
    places = (
        "[...document.querySelectorAll('main section')].map((one) => "
        "one.getBoundingClientRect().top + scrollY)"
    )
    before = page.evaluate(places)
    page.locator("#strip").scroll_into_view_if_needed()
    expect(page.locator("body")).to_have_attribute("data-drawn", "6", timeout=30_000)
    assert len(fetched) == 1
    assert page.evaluate(places) == before


def test_long_names_of_settings_keep_a_readable_column(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    for instance in Instance.objects.filter(model=made.model):
        worse = instance.version_id == made.versions["2026.11.3"].pk
        instance.components |= {
            "inductor_config option": "b07e35d" if worse else "4f1c9a2",
            "image": f"registry.example/ranker@sha256:{'3f' if worse else '0b'}" * 4,
        }
        instance.save()
    page = sign_in(user)
    page.set_viewport_size({"width": 1280, "height": 860})
    page.goto(live_server.url + made.url("compare"))
    name = page.get_by_role("rowheader", name="inductor_config option", exact=True)
    lines = """cell => { const all = document.createRange(); all.selectNodeContents(cell);
      return new Set([...all.getClientRects()].map(box => Math.round(box.top))).size; }"""
    assert name.evaluate(lines) == 1
    assert page.locator(".diff").evaluate(
        "table => table.parentElement.scrollWidth <= table.parentElement.clientWidth"
    )


def test_on_a_phone_the_notes_of_a_card_align_with_its_header(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(live_server.url + made.url("compare"))
    begin = """parts => [...new Set(parts.filter(part => part.offsetWidth).map(part =>
      part.getBoundingClientRect().left + parseFloat(getComputedStyle(part).paddingLeft)))]"""
    assert page.locator(
        "main .card > header, main .card .rule, main .card > footer, main .kinds > div, "
        "main .twin > summary"
    ).evaluate_all(begin) == [29]
