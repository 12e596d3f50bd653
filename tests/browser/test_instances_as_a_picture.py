"""The list of instances: its heat strips are saved as one picture, and on a phone a healthy
instance takes less space than a degraded one."""

import struct
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.common import clock
from dashboard.fleet.models import Instance
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import HEALTHY
from tests.dashboard.ui.charts_story import rolled_back


def test_a_picture_has_a_line_for_each_instance(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    page = sign_in(user)
    page.goto(live_server.url + rolled_back(project).url("instances/"))
    lines = page.locator("table.heat tbody tr").count()
    with page.expect_download() as saved:
        page.get_by_role("button", name="PNG").click()
    assert saved.value.suggested_filename == "instances.png"
    content = Path(saved.value.path()).read_bytes()
    assert content[:4] == b"\x89PNG"
    assert struct.unpack(">II", content[16:24]) == (2 * 932, 2 * (88 + 22 * lines))


def test_on_a_phone_a_healthy_instance_takes_few_lines(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    made = rolled_back(project)
    Instance.objects.filter(version=made.versions[HEALTHY.name]).update(
        ready_at=clock.now(), last_seen_at=clock.now()
    )
    page = sign_in(user)
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto(live_server.url + made.url("instances/"))
    calm = page.locator("table.heat tr", has=page.get_by_text("healthy", exact=True)).first
    other = page.locator("table.heat tr", has=page.get_by_text("degraded", exact=True)).first
    assert calm.get_by_role("cell").filter(visible=True).count() == 3
    assert other.get_by_role("cell").filter(visible=True).count() == 8
    page.set_viewport_size({"width": 1280, "height": 800})
    assert calm.get_by_role("cell").filter(visible=True).count() == 8
