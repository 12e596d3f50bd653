"""The panels of the Compare tab in a real browser: each loads its data and its library when it opens,
and is drawn with the zone and the theme of the page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.projects.models import Project
from tests.browser.test_compare import opened, unfold
from tests.dashboard.ui.charts_factory import Made
from tests.dashboard.ui.charts_story import rolled_back


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


def libraries(asked: list[str]) -> list[str]:
    return [url.rsplit("/", 1)[1] for url in asked if "/vendor/" in url]


def test_plotly_loads_with_the_heat_map_only_and_draws_the_chosen_version(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page, asked = sign_in(user), []
    page.on("request", lambda request: asked.append(request.url))
    opened(page, live_server, made)
    page.wait_for_load_state("networkidle")
    assert not any("latency.json" in url for url in asked)
    assert libraries(asked) == []
    page.get_by_role("heading", name="Latency over time").click()
    expect(page.locator(".maps .heatmaplayer image")).to_have_count(2)
    assert libraries(asked) == ["plotly.min.js"]
    page.get_by_text("Calls per bucket as a table").click()
    expect(page.locator(".maps tbody tr").first).to_contain_text(re.compile("to .* ms"))
    page.locator("[data-slots]").get_by_role("button", name="2026.11.3").click()
    expect(page.locator(".maps .heatmaplayer image")).to_have_count(1)
    x, y, width, height = plot(page)
    page.mouse.move(x + width * 0.9, y + height / 2)
    page.mouse.move(x + width * 0.9 + 1, y + height / 2)
    expect(page.locator(".maps .hovertext")).to_contain_text(re.compile("ms.*calls, .*% of this"))
    assert sum("latency.json" in url for url in asked) == 1


def plot(page: Page) -> tuple[float, float, float, float]:
    """The place of the first heat map in the window."""
    drawn = page.locator(".maps .nsewdrag").first
    drawn.scroll_into_view_if_needed()
    box = drawn.bounding_box()
    assert box
    return box["x"], box["y"], box["width"], box["height"]


def test_a_zoom_applies_to_both_heat_maps_until_it_is_reset(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = opened(sign_in(user), live_server, made)
    page.get_by_role("heading", name="Latency over time").click()
    expect(page.locator(".maps .heatmaplayer image")).to_have_count(2)
    labels = page.locator(".maps .heat").last.locator(".xaxislayer-above text")
    whole = labels.all_text_contents()
    x, y, width, height = plot(page)
    page.mouse.move(x + width * 0.6, y + height * 0.3)
    page.mouse.down()
    page.mouse.move(x + width * 0.8, y + height * 0.6, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
    assert labels.all_text_contents() != whole
    page.get_by_role("button", name="Reset zoom").click()
    expect(page.get_by_role("button", name="Reset zoom")).to_be_hidden()
    assert labels.all_text_contents() == whole


AXES = """() => { const chart = Chart.getChart(document.querySelector('.grow canvas'));
  const { x, y } = chart.scales;
  return { times: x.ticks.map(tick => tick.label), top: y.max, ink: x.options.ticks.color,
    tops: [...document.querySelectorAll('.grow')].map(
      row => Chart.getChart(row.querySelector('canvas')).scales.y.max) }; }"""

TIP = """() => { const { tooltip } = Chart.getChart(document.querySelector('.grow canvas'));
  return tooltip.opacity ? [...tooltip.title, ...tooltip.body.flatMap(part => part.lines)] : []; }"""


def test_the_breakdown_is_grouped_by_the_chosen_attribute_on_common_axes(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page, asked = sign_in(user), []
    page.on("request", lambda request: asked.append(request.url))
    opened(page, live_server, made)
    page.get_by_role("heading", name="Breakdown").click()
    expect(page.locator(".grow h3")).to_contain_text(["NVIDIA H100", "NVIDIA H200"])
    expect(page.locator(".grow canvas")).to_have_count(6)
    assert libraries(asked) == ["chart.js"]
    assert len(set(page.evaluate(AXES)["tops"])) == 1
    lines = page.locator(".grow .lines").first
    lines.scroll_into_view_if_needed()
    box = lines.bounding_box()
    assert box
    lines.hover(position={"x": box["width"] * 0.9, "y": 60})
    page.wait_for_function(f"({TIP})().length === 3")
    title, *values = page.evaluate(TIP)
    assert re.search(r"min: \+\d+%$", title)
    assert [value.split(" ")[0] for value in values] == ["2026.11.2", "2026.11.3"]
    page.get_by_role("button", name="Host").click()
    expect(page.locator(".grow h3").first).to_contain_text("gpu-h")
    assert "by=host" in page.url
    page.reload()
    page.get_by_role("heading", name="Breakdown").click()
    expect(page.locator(".grow h3").first).to_contain_text("gpu-h")


@pytest.mark.browser_context_args(timezone_id="Asia/Kolkata")
def test_panels_are_drawn_again_in_the_chosen_zone_and_theme(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    page.emulate_media(color_scheme="light")
    opened(page, live_server, made)
    unfold(page)
    times = page.locator(".maps .heat").first.locator(".xaxislayer-above text")
    local, axes = times.all_text_contents(), page.evaluate(AXES)
    page.locator("[data-zones] button[value=utc]").click()
    expect(times).not_to_have_text(local)
    assert page.evaluate(AXES)["times"] != axes["times"]
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"ink => ({AXES})().ink !== ink", arg=axes["ink"])


def test_a_panel_that_does_not_load_can_be_opened_again(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    made: Made,
    complaints: list[str],
) -> None:
    page = opened(sign_in(user), live_server, made)
    page.route("**/latency.json*", lambda route: route.fulfill(status=503, body="no"))
    head = page.get_by_role("heading", name="Latency over time")
    head.click()
    expect(page.get_by_text("The panel did not load.")).to_be_visible()
    assert all("503" in one for one in complaints)
    complaints.clear()
    page.unroute("**/latency.json*")
    head.click()
    head.click()
    expect(page.locator(".maps .heatmaplayer image")).to_have_count(2)


def test_a_library_that_does_not_load_is_loaded_again(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    made: Made,
    complaints: list[str],
) -> None:
    page = opened(sign_in(user), live_server, made)
    page.route("**/vendor/chart.js", lambda route: route.fulfill(status=503, body="no"))
    head = page.get_by_role("heading", name="Breakdown")
    head.click()
    expect(page.get_by_text("The panel did not load.")).to_be_visible()
    assert all("503" in one for one in complaints)
    complaints.clear()
    page.unroute("**/vendor/chart.js")
    head.click()
    head.click()
    expect(page.locator(".grow canvas")).to_have_count(6)
