"""The 3 am test: from the link of a message to the problem, its start, confidence, place and cause, the
next step and the acknowledgement, on a desktop and on a phone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.alerts.links import alert_url
from dashboard.alerts.models import Alert, AlertEvent
from dashboard.projects.models import Project

MAX_CLICKS = 2
FIRST_SCREEN = {"desktop": (1440, 900, 900), "phone": (375, 812, 1100)}
"""Width and height of the screen, and the height in which the answer and the chart end. On a phone
the chart begins on the first screen."""


@dataclass
class Reader:
    """A person on call: counts clicks, and notes when each answer was on the screen."""

    page: Page
    bottom: int
    clicks: int = 0

    def sees(self, found: Locator, *, within: int | None = None) -> None:
        """The element is visible without scrolling further than `within` pixels."""
        expect(found).to_be_visible()
        box = found.bounding_box()
        assert box is not None
        end = box["y"] + box["height"]
        assert end <= (within or self.bottom), f"ends at {end:.0f} px"

    def click(self, found: Locator) -> None:
        self.clicks += 1
        found.click()


def reads_the_answer(reader: Reader, height: int) -> None:
    """Since, impact, confidence and cause are on the first screen."""
    facts = reader.page.locator("dl.facts > div")
    for name, said in (
        ("Since", "after deployment of 2026.11.3"),
        ("Impact", "6 of 12 instances"),
        ("Confidence", "95% CI"),
        ("Likely cause", "score_batch reached its recompile limit"),
    ):
        fact = facts.filter(has=reader.page.locator("dt", has_text=name))
        expect(fact).to_contain_text(said)
        reader.sees(fact, within=height)


@pytest.mark.parametrize("screen", FIRST_SCREEN)
def test_the_link_of_a_message_leads_to_the_answer_and_the_acknowledgement(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    alert: Alert,
    screen: str,
) -> None:
    width, height, bottom = FIRST_SCREEN[screen]
    page = sign_in(user)
    page.set_viewport_size({"width": width, "height": height})
    link = alert_url(project=project.slug, number=alert.number)
    address = live_server.url + link[link.index("/p/") :]
    assert address.endswith("/"), "a link without the slash costs one more request"
    reader, begun = Reader(page, bottom), time.monotonic()
    answers = []
    page.on("response", lambda response: answers.append(response.status))

    reader.clicks += 1  # the button of the message
    page.goto(address)
    assert answers[0] == 200, "the link is not redirected"
    what = page.get_by_role("heading", level=1)
    expect(what).to_have_text(alert.title)
    reader.sees(what, within=height)
    reads_the_answer(reader, height)
    reader.sees(page.locator(".plot2").first)
    todo = page.locator(".rb-list > li.now")
    expect(todo).to_contain_text("Route traffic back to 2026.11.2")
    expect(todo.locator("code")).to_have_text("kubectl argo rollouts undo ranker")
    if screen == "desktop":
        reader.sees(todo)
    acknowledge = page.get_by_role("button", name="Acknowledge")
    reader.sees(acknowledge, within=height)
    box = acknowledge.bounding_box()
    assert box is not None and box["height"] >= (44 if screen == "phone" else 24)

    reader.click(acknowledge)
    expect(page.locator(".ameta")).to_contain_text("Acknowledged by mara")
    seconds = time.monotonic() - begun
    print(f"3 am path, {screen}: {seconds:.1f} s, {reader.clicks} clicks")
    assert reader.clicks <= MAX_CLICKS
    assert AlertEvent.objects.filter(alert=alert, kind="acknowledged").count() == 1
