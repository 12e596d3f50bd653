"""Driving charts in a real browser: pointer, keyboard, toggles, zoom, enlarged charts and the overlay
of last week."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.fleet.models import Deployment, Series, VersionMinute
from dashboard.projects.models import Project
from tests.dashboard.bulk_insert import insert_rows
from tests.dashboard.ui.charts_factory import HEALTHY, Made
from tests.dashboard.ui.charts_story import rolled_back

PHONE, DESK = {"width": 375, "height": 800}, {"width": 1440, "height": 1400}
RANGE = "?range=6h"
WEEK = 7 * 1440
PAINTED = "path => getComputedStyle(path).stroke"
CUT_TEXTS = """plot => [...plot.querySelectorAll('text[data-mark]')].map(one => one.getBoundingClientRect())
  .flatMap((a, i, all) => all.slice(i + 1).map(b => a.left < b.right && b.left < a.right)).some(Boolean)"""
HEIGHTS = (
    "plot => [...plot.querySelectorAll('text')].map(one => one.getBoundingClientRect().height)"
)


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


@pytest.fixture
def page(sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made) -> Page:
    found = sign_in(user)
    found.set_viewport_size(DESK)  # type: ignore[arg-type]
    found.goto(live_server.url + made.url() + RANGE)
    expect(found.locator("#trend-charts")).to_have_attribute("data-drawn", "4")
    return found


def plot(page: Page, key: str) -> Locator:
    return page.locator(f'[data-chart="{key}"] [data-plot]')


def hover(page: Page, key: str, share: float) -> None:
    plot(page, key).scroll_into_view_if_needed()
    box = plot(page, key).bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * share, box["y"] + 80)


def test_four_charts_are_large_and_the_others_are_drawn_when_they_open(page: Page) -> None:
    large = page.locator('[data-chart][data-size="large"]')
    keys = large.evaluate_all("all => all.map(one => one.dataset.chart)")
    assert keys[:3] == ["p50", "eager", "p99"] and len(keys) == 4
    assert plot(page, "p50").locator("svg.pl").get_attribute("height") == "218"
    page.get_by_text("More metrics").click()
    expect(plot(page, "gpu_memory").locator(".l.s2")).to_have_count(1)
    assert int(page.locator("#trend-charts").get_attribute("data-drawn") or 0) > 8


def test_an_axis_that_does_not_begin_at_zero_has_a_zigzag(page: Page) -> None:
    expect(plot(page, "p50").locator(".zig")).to_have_count(1)
    expect(plot(page, "eager").locator(".zig")).to_have_count(0)
    expect(plot(page, "eager").locator(".ya text").first).to_have_text("0%")


def test_the_theme_changes_the_lines(page: Page) -> None:
    line = plot(page, "p50").locator(".l.s2")
    light = line.evaluate(PAINTED)
    page.emulate_media(color_scheme="dark")
    assert line.evaluate(PAINTED) != light


@pytest.mark.browser_context_args(timezone_id="Asia/Kolkata")
def test_the_time_axis_has_the_chosen_zone_and_the_theme(page: Page) -> None:
    labels = plot(page, "p50").locator("svg.pl > text:not([data-mark])").filter(has_text=":")
    assert labels.count() > 2
    fill = "label => getComputedStyle(label).fill"
    local, ink = labels.all_text_contents(), labels.first.evaluate(fill)
    page.locator("[data-zones] button[value=utc]").click()
    expect(labels).not_to_have_text(local)
    assert labels.count() > 2
    page.emulate_media(color_scheme="dark")
    assert labels.first.evaluate(fill) != ink


def test_text_keeps_its_size_and_labels_stay_apart_at_every_width(page: Page) -> None:
    sizes = set()
    for width in (320, 375, 820, 1440, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(100)
        drawn = plot(page, "p50").locator("svg.pl")
        sizes |= {round(height) for height in drawn.evaluate(HEIGHTS)}
        assert not drawn.evaluate(CUT_TEXTS), width
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), width
    assert max(sizes) - min(sizes) <= 1, sizes
    labels = plot(page, "p50").locator("text[data-mark]").all_text_contents()
    assert {"2026.11.2", "2026.11.3"} <= set(labels)


def test_the_crosshair_has_a_tooltip_at_the_pointer(page: Page) -> None:
    hover(page, "p50", 0.9)
    tip = plot(page, "p50").locator(".tip")
    expect(tip).to_contain_text(re.compile(r"\d\d:\d\d, \d\smin: \+[23]\d%"))
    expect(tip).to_contain_text("2026.11.3")
    expect(tip).to_contain_text("ms")
    expect(page.locator("#trend-charts .cross")).to_have_count(4)
    assert page.locator("#trend-charts .tip").count() == 1
    page.mouse.move(0, 0)
    expect(page.locator("#trend-charts .cross")).to_have_count(0)


def test_on_a_phone_the_fact_line_shows_the_values(page: Page) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.locator("#trend-charts").focus()
    for _ in range(12):
        page.keyboard.press("ArrowLeft")
    expect(page.locator('[data-chart="p50"] [data-fact]')).to_be_hidden()
    expect(page.locator('[data-chart="p50"] [data-now]')).to_contain_text("ms")
    expect(plot(page, "p50").locator(".tip")).to_be_hidden()


def test_the_arrow_keys_move_the_crosshair_and_are_spoken(page: Page) -> None:
    page.locator("#trend-charts").focus()
    page.keyboard.press("ArrowLeft")
    head = plot(page, "p50").locator(".tip b")
    first = head.text_content() or ""
    page.keyboard.press("ArrowLeft")
    expect(head).not_to_have_text(first)
    expect(page.locator("[data-speech]")).to_contain_text("Eager calls")
    page.keyboard.press("Escape")
    expect(page.locator("#trend-charts .tip")).to_have_count(0)


def test_a_series_is_switched_off_and_the_address_has_it(page: Page) -> None:
    page.get_by_role("button", name="2026.11.2", exact=True).click()
    expect(plot(page, "p50").locator(".l.s1")).to_have_count(0)
    page.get_by_role("button", name="95% CI").click()
    expect(plot(page, "p50").locator(".a2")).to_have_count(0)
    assert "hide=1%2Cci" in page.url
    page.reload()
    expect(plot(page, "p50").locator(".l.s2")).to_have_count(1)
    expect(plot(page, "p50").locator(".l.s1")).to_have_count(0)
    button = page.get_by_role("button", name="2026.11.2", exact=True)
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    expect(plot(page, "p50").locator(".l.s1")).to_have_count(1)


def test_a_chart_is_enlarged_and_escape_returns_the_focus(page: Page) -> None:
    button = page.get_by_role("button", name="Enlarge p50")
    button.click()
    dialog = page.locator("#enlarged")
    expect(dialog.locator("svg.pl")).to_have_attribute("height", "440")
    expect(dialog.get_by_role("heading")).to_have_text("p50")
    ticks = dialog.locator(".ya text").all_text_contents()
    dialog.get_by_role("button", name="Log scale").click()
    assert dialog.locator(".ya text").all_text_contents() != ticks
    page.keyboard.press("ArrowLeft")
    expect(dialog.locator(".tip")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(button).to_be_focused()


def test_a_dragged_span_becomes_the_range_and_back_returns(page: Page) -> None:
    plot(page, "p50").scroll_into_view_if_needed()
    box = plot(page, "p50").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 90)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 90, steps=4)
    expect(page.locator("#trend-charts .sel")).to_have_count(4)
    page.mouse.up()
    page.wait_for_url(re.compile("from=.*to="))
    page.go_back()
    page.wait_for_url(re.compile(r"range=6h$"))


def test_a_span_is_chosen_by_keyboard(page: Page) -> None:
    page.locator("#trend-charts").focus()
    for _ in range(3):
        page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("from=.*to="))


def test_the_same_time_last_week_is_laid_over(page: Page, made: Made) -> None:
    week = page.get_by_role("button", name="same time last week")
    week.click()
    expect(page.locator("[data-note]")).to_have_text("No data for the same time last week.")
    expect(week).to_have_attribute("aria-pressed", "false")
    _run_last_week(made)
    week.click()
    expect(plot(page, "p50").locator(".l.week")).to_have_attribute("d", re.compile("^M"))
    expect(week).to_have_attribute("aria-pressed", "true")
    assert "overlay=week" in page.url
    page.reload()
    expect(plot(page, "p50").locator(".l.week")).to_have_count(1)
    hover(page, "p50", 0.9)
    expect(plot(page, "p50").locator(".tip")).to_contain_text("same time last week")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_last_week_that_does_not_load_says_so(
    page: Page, complaints: list[str], status: int
) -> None:
    page.route("**/models/*.json*week=1*", lambda route: route.fulfill(status=status, body="no"))
    page.get_by_role("button", name="same time last week").click()
    expect(page.locator("[data-note]")).to_have_text("Last week did not load. Try again.")
    assert all(str(status) in one for one in complaints)
    complaints.clear()


def test_a_chart_is_saved_as_an_image(page: Page) -> None:
    page.locator('[data-chart="p50"] .save summary').click()
    with page.expect_download() as saved:
        page.locator('[data-png="p50"]').click()
    assert saved.value.suggested_filename.startswith("p50-")
    assert saved.value.suggested_filename.endswith(".png")


def _run_last_week(made: Made) -> None:
    """Copies the minutes of the baseline to seven days earlier."""
    version = made.versions[HEALTHY.name]
    Deployment.objects.filter(version=version).update(
        started_minute=made.deployments[HEALTHY.name].started_minute - WEEK
    )
    columns = [field.attname for field in VersionMinute._meta.concrete_fields if field.name != "pk"]
    rows = VersionMinute.objects.filter(series_id__in=Series.objects.filter(version=version))
    insert_rows(
        VersionMinute,
        [
            row | {"day": row["day"] - 7, "minute": row["minute"] - WEEK}
            for row in rows.values(*columns)
        ],
    )
