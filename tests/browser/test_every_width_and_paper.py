"""Pages at every width, in print and in forced colours, found from the routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.test import Client
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.projects.models import Project
from tests.browser.test_every_address_that_is_a_page import OF_OTHERS, pages
from tests.browser.test_pages_are_open_to_everyone import compared, pages_of
from tests.dashboard.conftest import sign_in as signed_in
from tests.dashboard.ui.charts_factory import Made

__all__ = ["compared", "pages"]
pytestmark = pytest.mark.timeout(1200)
WIDTHS = (320, 375, 721, 740, 820, 872, 901, 1180, 1401, 1440)
BEYOND = """() => {
  const wide = innerWidth, found = [];
  if (document.documentElement.scrollWidth > wide) found.push(`the page is ${document.documentElement.scrollWidth} px wide`);
  for (const one of document.querySelectorAll('.top > *, .top .search input')) {
    const { left, right, width } = one.getBoundingClientRect();
    if (width && !one.matches('.nav') && (left < -0.5 || right > wide + 0.5))
      found.push(`${one.className || one.tagName} of the bar ends at ${Math.round(right)} px`);
  }
  return found;
}"""
CUT = """() => [...document.querySelectorAll('.fleet, .evi table')].map((one) => one.closest('.scroll'))
  .filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => `a table needs ${box.scrollWidth} of ${box.clientWidth} px`)"""
PRESSED = """() => [...document.querySelectorAll(
    'button, .btn, .live, [data-live], .exports, .top, .skip, .acts, .pager, .q, input[type=submit]')]
  .filter((one) => one.checkVisibility()).map((one) => `${one.tagName}.${one.className}: ${one.textContent.trim().slice(0, 40)}`)"""
UNBROKEN = """() => [...document.querySelectorAll('tr, .banner, .note, figure, .stats')].filter((one) => one.checkVisibility())
  .filter((one) => !['avoid', 'avoid-page'].includes(getComputedStyle(one).breakInside)).map((one) => `${one.tagName}.${one.className}`)"""
RINGS = """() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
  .filter((one) => one.checkVisibility() && !one.disabled).map((one) => {
    one.focus({ focusVisible: true });
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(one);
    const seen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && !/, 0\\)$/.test(outlineColor);
    return [document.activeElement === one, seen, one.outerHTML.slice(0, 80)];
  }).filter(([focused, ring]) => focused && !ring).map(([, , html]) => html)"""


@pytest.fixture
def ours(pages: list[tuple[str, str]], compared: Made) -> list[str]:
    """The URLs of all pages with our own markup, and of a model with findings and ranks."""
    return [
        *(address for route, address in pages if not route.startswith(OF_OTHERS)),
        *pages_of(compared),
    ]


def visited(page: Page, live_server: LiveServer, addresses: list[str]) -> Iterator[str]:
    for address in addresses:
        page.goto(live_server.url + address)
        page.wait_for_load_state("networkidle")
        yield address


def settled(page: Page, faults: str) -> list[str]:
    """Remaining faults after the charts have adapted to the new width, which takes up to two
    seconds on a busy machine."""
    found: list[str] = page.evaluate(faults)
    for _ in range(8):
        if not found:
            break
        page.wait_for_timeout(250)
        found = page.evaluate(faults)
    return found


def test_no_page_overflows_at_any_width(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, ours: list[str]
) -> None:
    page, found = sign_in(user), []
    for address in visited(page, live_server, ours):
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            found += [f"{address} at {width} px: {fault}" for fault in settled(page, BEYOND)]
            if width >= 721:
                found += [f"{address} at {width} px: {fault}" for fault in settled(page, CUT)]
    assert found == []


def test_the_menu_of_a_time_range_stays_inside_the_narrowest_phone(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, compared: Made
) -> None:
    page = sign_in(user)
    page.set_viewport_size({"width": 320, "height": 700})
    for address in (f"{compared.url('')}compare", compared.url("")):
        page.goto(live_server.url + address)
        page.locator("details.menu summary", has_text="Custom").click()
        assert page.evaluate(BEYOND) == []
        box = page.locator("form.range").bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 320


def test_print_has_no_action_and_no_cut_row(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, ours: list[str]
) -> None:
    page, found = sign_in(user), []
    page.emulate_media(media="print")
    for address in visited(page, live_server, ours):
        found += [f"{address} prints {fault}" for fault in page.evaluate(PRESSED)]
        found += [f"{address} cuts {fault}" for fault in page.evaluate(UNBROKEN)]
    assert found == []


def test_print_is_white_in_every_theme(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    page = sign_in(user)
    signed_in(Client(), user).post("/account/theme/", {"theme": "dark", "next": "/"})
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(f"{live_server.url}/p/{project.slug}/")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    inks = page.evaluate(
        "['--surface', '--ink'].map((name) => "
        "getComputedStyle(document.body).getPropertyValue(name).trim())"
    )
    assert inks == ["#ffffff", "#15181c"]


def test_forced_colours_keep_the_ring_of_the_focus(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, ours: list[str]
) -> None:
    page, found = sign_in(user), []
    page.emulate_media(forced_colors="active")
    for address in visited(page, live_server, ours):
        found += [f"{address}: {html}" for html in page.evaluate(RINGS)]
    assert found == []
