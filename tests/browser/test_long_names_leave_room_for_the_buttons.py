"""Tables of the settings with the longest possible names: the controls stay visible."""

from collections.abc import Callable

from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.alerts.models import Channel, Rule
from dashboard.common import clock
from dashboard.fleet.models import LimitReached
from dashboard.projects.models import Project, Role
from tests.dashboard.ui import factory


def test_every_table_fits_its_card(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    now = clock.now()
    factory.person("p" * 150, project, Role.VIEWER)
    channel = Channel.objects.create(
        project=project,
        kind="slack",
        name="#" + "c" * 99,
        address="https://hooks.example/T/B/x",
        created_at=now,
    )
    Rule.objects.create(project=project, channel=channel)
    LimitReached.objects.create(
        project=project,
        kind="version",
        day=int(now.timestamp() // 86400),
        count=9,
        example="v" * 200,
        last_at=now,
    )
    page = sign_in(user)
    page.set_viewport_size({"width": 1280, "height": 900})
    for part in ("settings/members/", "settings/messages/", "health/"):
        page.goto(f"{live_server.url}/p/search-and-chat/{part}")
        boxes = page.locator("main .scroll")
        assert boxes.count() > 0, part
        wide = boxes.evaluate_all(
            "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth + 1).map(box "
            "=> box.textContent.slice(0, 80))"
        )
        assert wide == [], part
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto(f"{live_server.url}/p/search-and-chat/")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
        "the note of a limit"
    )
