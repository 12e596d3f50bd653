"""The comparison of weeks with implausible names: they stay text, and fit a phone both folded and
unfolded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.fleet.models import Series, Stratum
from dashboard.projects.models import Project
from tests.dashboard.ui.weeks_story import weeks

HOSTILE = "<img src=x onerror=alert(1)>{{ 7*7 }}`\u202e" + "r" * 150


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_hostile_region_of_200_characters(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    theme: str,
) -> None:
    model = weeks(project, lambda ago: 0.006 if ago <= 28 else 0.012, name="m" * 200)
    Series.objects.filter(version__model=model).update(region=HOSTILE, bucket="2^" + "9" * 60)
    Stratum.objects.filter(project=project).update(gpu="G" * 100)
    page = sign_in(user)
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": 375, "height": 800})
    for address in (
        f"/p/search-and-chat/models/{model.pk}/",
        f"/p/search-and-chat/models/{model.pk}/weeks/",
    ):
        page.goto(live_server.url + address)
        if address.endswith("/weeks/"):
            expect(page.locator("section.weeks")).to_contain_text("faster")
        for summary in page.locator(".weeks summary").all():
            summary.click()
        assert page.locator("main img").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), address
        assert [one["id"] for one in Axe().run(page).response["violations"]] == []
