"""The banner for silent instances, the last known verdict and the alert for diverged ranks fit a
phone, a tablet and a desktop in both themes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Plan, charted
from tests.dashboard.ui.test_diverged_ranks_have_a_runbook_of_their_own import diverged
from tests.dashboard.ui.test_silence_is_one_banner import alert_of, silent_fleet, store_verdict

WIDTHS = (375, 820, 1440)
FITS = "document.documentElement.scrollWidth <= window.innerWidth"
PICTURES = os.environ.get("COMPILEWATCH_TEST_PICTURES", "")
"""Folder for a screenshot of each page; without it, no screenshot is taken."""


def look(page: Page, live_server: LiveServer, addresses: dict[str, str]) -> list[str]:
    """The pages that are wider than the screen."""
    wide = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            for name, address in addresses.items():
                page.goto(live_server.url + address)
                if not page.evaluate(FITS):
                    wide.append(f"{name} at {width} px, {scheme}")
                if PICTURES:
                    page.screenshot(path=Path(PICTURES) / f"{name}-{width}-{scheme}.png")
    return wide


@pytest.mark.parametrize("models", [0, 40])
def test_a_silent_fleet(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    models: int,
) -> None:
    silent_fleet(project, models)
    addresses = {f"fleet-{models}": f"/p/{project.slug}/"}
    for deployment in Deployment.objects.order_by("pk"):
        store_verdict(deployment, "roll_back" if deployment.pk % 5 == 0 else "healthy")
    first = Deployment.objects.order_by("pk").first()
    if first is not None:
        alert_of(
            first,
            "fleet_silence",
            f"{4 * models} of {4 * models} instances of the fleet stopped reporting",
        )
        model = f"/p/{project.slug}/models/{first.model_id}"
        addresses |= {"alert-silence": f"/p/{project.slug}/alerts/7/", "model-stale": f"{model}/"}
        addresses |= {
            "version-stale": f"{model}/versions/{first.version_id}/",
            "alerts": f"/p/{project.slug}/alerts/",
        }
    page = sign_in(user)
    assert look(page, live_server, addresses) == []
    page.goto(f"{live_server.url}/p/{project.slug}/")
    assert page.locator("section.silence").count() == bool(models)


def test_diverged_ranks(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    made = charted(project, Plan("1", start=60, per_gpu=1))
    alert = diverged(made, odd=(2, 5))
    model = f"/p/{project.slug}/models/{made.model.pk}"
    addresses = {
        "alert-ranks": f"/p/{project.slug}/alerts/2/",
        "model-ranks": f"{model}/",
        "version-ranks": f"{model}/versions/{alert.deployment.version_id}/",
        "fleet-ranks": f"/p/{project.slug}/",
    }
    assert look(sign_in(user), live_server, addresses) == []
