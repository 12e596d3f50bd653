"""Onset in a real browser: every trend chart shades it and names it, at both widths and in both
themes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.charts_factory import Made, now_minute
from tests.dashboard.ui.charts_story import rolled_back

PHONE, DESK = {"width": 375, "height": 800}, {"width": 1440, "height": 900}
PLACES = """plot => { const data = JSON.parse(document.getElementById('trend-data').textContent);
  const [from, to] = [data.window.first, data.window.last].map(Date.parse);
  const mark = data.marks.find((one) => one.until), [band, all] = [plot.querySelector('.onsetf'), plot].map(
    (one) => one.getBoundingClientRect());
  return [band.left - all.left, all.width * (Date.parse(mark.at) - from) / (to - from), band.width]; }"""


@pytest.fixture
def made(project: Project) -> Made:
    found = rolled_back(project)
    verdict = Verdict.objects.get()
    for row in verdict.evidence["evidence"]:
        if row["drives"]:
            row["onset"] = (now_minute() - 80, now_minute() - 66)
    verdict.save()
    return found


def test_the_band_is_drawn_and_named(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, made: Made
) -> None:
    page = sign_in(user)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for window in (DESK, PHONE):
            page.set_viewport_size(window)  # type: ignore[arg-type]
            page.goto(live_server.url + made.url())
            expect(page.locator("#trend-charts")).to_have_attribute("data-drawn", "4")
            chart = page.locator('[data-chart="p50"] [data-plot]')
            left, expected, width_px = chart.locator("svg.pl").evaluate(PLACES)
            assert abs(left - expected) < 2 and width_px >= 3, f"{theme} {window}"
            expect(chart).to_have_attribute("aria-label", made_label())
            page.locator("#trend-events > summary").click()
            expect(page.locator("#trend-events .span-mark")).to_be_visible()
            expect(page.locator("#trend-events")).to_contain_text("onset of the regression")
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
                f"{theme} {window}"
            )
            violations = Axe().run(page).response["violations"]
            assert [one["id"] for one in violations] == [], f"{theme} {window}"


def made_label() -> re.Pattern[str]:
    return re.compile(r"The regression began between .* UTC and .* UTC\.$")
