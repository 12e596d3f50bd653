"""The heat strips of instances are saved as one picture, with a line for each instance."""

import struct
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.projects.models import Project
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
