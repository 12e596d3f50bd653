"""The Compare tab in a real browser: intervals in their rows, accessible and narrow enough with all
panels open, hostile names stay text."""

from __future__ import annotations

import re
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

TALLEST, HEAVIEST = 1_700, 300_000
"""Pixels at 1440 px, and bytes with an empty cache."""
PHONE, DESK = {"width": 375, "height": 800}, {"width": 1440, "height": 900}
HOSTILE = '<b>bold</b><a href="javascript:alert(1)">x</a>&lt;i&gt;<br>%{x}'


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


def opened(page: Page, live_server: LiveServer, made: Made, query: str = "") -> Page:
    page.goto(live_server.url + made.url("compare") + query)
    expect(page.locator(".ev2")).to_be_visible()
    return page


def unfold(page: Page) -> None:
    """Opens every panel and waits for those that load."""
    for summary in page.locator("details.more > summary").all():
        summary.click()
    if page.locator("[data-panel]").count():
        expect(page.locator("[data-panel=map] .heatmaplayer image").first).to_be_attached()
        expect(page.locator("[data-panel=groups] .grow").first).to_be_visible()


def test_intervals_instances_and_distributions_are_drawn(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    row = page.get_by_role("row", name=re.compile("^p50"))
    expect(row.locator(".ivs line.iv")).to_have_count(3)  # the interval and two caps
    expect(row.locator(".ivs .bandf")).to_have_count(1)
    expect(page.locator(".ev2 .ivs [class^=ivf]")).to_have_count(4)  # p50, p99, errors, eager
    expect(page.locator("#strip .dotf")).to_have_count(16)
    page.get_by_text("Latency distribution by cohort").first.click()
    expect(page.locator("svg.density")).to_have_count(4)
    expect(page.locator("svg.density .l.share")).to_have_count(8)


def test_an_interval_is_in_the_middle_of_its_row(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    page.set_viewport_size(DESK)  # type: ignore[arg-type]
    opened(page, live_server, made)
    row = page.get_by_role("row", name=re.compile("^p50"))
    around, mark = row.bounding_box(), row.locator(".ivs .ivf").bounding_box()
    assert around and mark
    assert abs((around["y"] + around["height"] / 2) - (mark["y"] + mark["height"] / 2)) <= 3


def test_the_tab_is_low_and_light(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page, sizes = sign_in(user), []
    page.set_viewport_size(DESK)  # type: ignore[arg-type]
    wire = page.context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.send("Network.setCacheDisabled", {"cacheDisabled": True})
    wire.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    opened(page, live_server, made)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollHeight") <= TALLEST
    assert sum(sizes) <= HEAVIEST, sum(sizes)


def test_versions_are_swapped(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    page.get_by_role("link", name="Swap versions").click()
    expect(page.get_by_text("No verdict for")).to_be_visible()
    page.get_by_role("link", name="View the original comparison").click()
    expect(page.locator(".ivs").first).to_be_visible()
    older = made.pair("2026.10.9", "2026.11.3")
    page.goto(live_server.url + older)
    expect(
        page.get_by_text("The versions ran at the same time for less than 10 min")
    ).to_be_visible()


def test_the_cumulative_curve_is_chosen_and_the_address_has_it(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    page.get_by_text("Latency distribution by cohort").first.click()
    expect(page.locator("svg.density .ecdf").first).to_be_hidden()
    page.get_by_role("button", name="CDF").click()
    expect(page.locator("svg.density .ecdf").first).to_be_visible()
    expect(page.locator("svg.density .share").first).to_be_hidden()
    assert "curve=ecdf" in page.url
    page.reload()
    expect(page.get_by_role("button", name="CDF", include_hidden=True)).to_have_attribute(
        "aria-pressed", "true"
    )


def test_the_page_is_accessible(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        for window in (PHONE, DESK):
            page.set_viewport_size(window)  # type: ignore[arg-type]
            opened(page, live_server, made)
            unfold(page)
            violations = Axe().run(page).response["violations"]
            found = [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in violations]
            assert found == [], f"{theme} {window}"
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
                f"{theme} {window}"
            )


def test_no_width_scrolls_the_page_sideways(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    unfold(page)
    for width in (320, 375, 820, 1024, 1440, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width


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
    unfold(page)
    assert page.locator("main svg a, main svg b, main img").count() == 0
    assert "<b>bold</b>" in (page.locator("#strip").text_content() or "")
    expect(page.locator(".grow h3").filter(has_text="<b>bold</b>")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


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
    page.get_by_role("heading", name="Configuration").click()
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
        "main details.more > summary"
    ).evaluate_all(begin) == [29]
