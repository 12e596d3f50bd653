"""Pages of an engine whose p50 is in its first bucket, in a real browser: charts without a point
show the reason, and nothing overflows."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.fleet.models import Instance, ModelVersion
from dashboard.projects.models import Project
from tests.dashboard.ui.test_a_quantile_below_the_first_bucket_is_a_bound import run

WIDTHS = (375, 1440)


@pytest.fixture
def pages(project: Project, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The pages of two versions; the older version is slow enough for a p50 in a closed bucket."""
    run(project, "v1", "compile", 420.0, monkeypatch, slow=True)
    run(project, "v2", "changed", 400.0, monkeypatch)
    ids = dict(ModelVersion.objects.values_list("name", "pk"))
    one = Instance.objects.get(version__name="v2")
    model = f"/p/{project.slug}/models/{one.model_id}"
    return {
        "fleet": f"/p/{project.slug}/",
        "model": f"{model}/",
        "version": f"{model}/versions/{ids['v2']}/",
        "instance": f"{model}/instances/{one.instance_id}/",
        "compare": f"{model}/compare?a={ids['v1']}&b={ids['v2']}",
        "numbers": f"{model}/numbers/",
    }


def test_no_page_is_wider_than_the_screen(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, pages: dict[str, str]
) -> None:
    page = sign_in(user)
    for name, address in pages.items():
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(live_server.url + address)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)


def test_the_crosshair_shows_the_bound_and_the_mean(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, pages: dict[str, str]
) -> None:
    page = sign_in(user)
    page.goto(live_server.url + pages["model"])
    chart = page.locator('[data-chart="p50"]')
    expect(chart).to_contain_text(
        "No point where it lies in the engine's first bucket: v2 <\u00a0300\u00a0ms"
    )
    expect(page.locator("#trend-charts")).to_have_attribute("data-drawn", re.compile(r"\d+"))
    page.locator("#trend-charts").focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    expect(chart.locator(".tip")).to_contain_text("mean 84.1")
