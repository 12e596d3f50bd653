"""Names of 200 characters, the longest that agents may report: they wrap in their own cell without
covering a number or crossing an edge; short names are not wrapped."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.fleet.models import Instance
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Made, Plan, charted
from tests.dashboard.ui.charts_story import rolled_back

FROM, TO = "<b>" + "a" * 190, "v" * 200
PAST_ITS_CELL = """cells => cells.flatMap(cell => [...cell.querySelectorAll('*')].filter(
    one => one.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1)).map(one => one.outerHTML.slice(0, 90))"""


@pytest.fixture
def long(project: Project) -> Made:
    made = charted(
        project,
        Plan(FROM, start=70, per_gpu=1),
        Plan(TO, start=40, per_gpu=1, eager=0.3),
        name="m" * 200,
    )
    Instance.objects.update(host="h" * 180)
    return made


def test_no_name_lies_over_the_numbers_of_the_fleet(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, long: Made
) -> None:
    page = sign_in(user)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{live_server.url}/p/search-and-chat/")
    cells = page.locator(".ft tbody .c-model, .ft tbody .c-version")
    assert cells.count() == 2
    assert cells.evaluate_all(PAST_ITS_CELL) == []
    assert page.locator(".scroll").evaluate("one => one.scrollWidth <= one.clientWidth")


def test_a_comparison_and_a_version_fit_a_phone(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, long: Made
) -> None:
    page = sign_in(user)
    page.set_viewport_size({"width": 375, "height": 800})
    for address in (
        long.pair(FROM, TO),
        long.url(f"versions/{long.versions[TO].pk}/"),
        long.url("instances/"),
        long.url("ranks/"),
    ):
        page.goto(live_server.url + address)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), address


def test_a_change_in_the_table_of_versions_is_one_word(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    page = sign_in(user)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(live_server.url + rolled_back(project).url("versions/"))
    changes = page.locator(".versions td.num .delta")
    expect(changes.first).to_be_visible()
    cells = changes.evaluate_all(
        "all => all.map(one => [one.textContent, one.textContent.split(' ').length, "
        "one.offsetHeight])"
    )
    line = min(height for _, _, height in cells)
    assert [text for text, words, height in cells if height > 1.5 * line * words] == []
