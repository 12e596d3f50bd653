"""A person on call finds version, start time, hosts and remedy from the Slack notification in at
most two clicks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from django.conf import settings
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.alerts.channels.base import Message
from dashboard.alerts.channels.slack import Slack
from dashboard.alerts.models import Alert, RollbackGuide
from dashboard.alerts.payloads import build_alert_payload
from dashboard.common import clock
from dashboard.fleet.models import Instance
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Made
from tests.dashboard.ui.charts_story import rolled_back
from tests.dashboard.ui.stories import line


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


@pytest.fixture
def alert(made: Made) -> Alert:
    """The alert of the worse version, with a rollback runbook."""
    deployment = made.deployments["2026.11.3"]
    verdict = deployment.verdicts.get()
    created = Alert.objects.create(
        project=made.project, deployment=deployment, number=7, verdict=verdict, severity="roll_back", worst="roll_back",
        title="ranker 2026.11.3: p50 31% slower, 28% of calls run eager", opened_at=clock.now(),
    )  # fmt: skip
    line(created, "opened", verdict.sentence, 1, verdict)
    RollbackGuide.objects.create(
        project=made.project, model_name="ranker", text="kubectl argo rollouts undo ranker", url=""
    )
    return created


def buttons(alert: Alert) -> dict[str, str]:
    """The paths behind the buttons of the notification in Slack."""
    body = (
        Slack()
        .build(
            Message(
                "m1", "opened", clock.now(), build_alert_payload(alert=alert, verdict=alert.verdict)
            )
        )
        .body
    )
    elements = [
        one
        for block in json.loads(body)["blocks"]
        for one in block.get("elements", [])
        if one.get("type") == "button"
    ]
    return {one["text"]["text"]: one["url"].removeprefix(settings.BASE_URL) for one in elements}


def evidence(page: Page) -> Locator:
    """The row of the p50 in the evidence of a comparison."""
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="p50")).first


def test_one_click_shows_version_and_start_and_a_second_shows_the_hosts(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, alert: Alert, made: Made
) -> None:
    page = sign_in(user)
    page.goto(live_server.url + buttons(alert)["Acknowledge"])
    expect(page.get_by_role("heading", level=1)).to_contain_text("2026.11.3")
    main = page.locator("main")
    expect(main).to_contain_text("on all 4 instances")
    expect(main).to_contain_text("Route traffic back to 2026.11.2")
    expect(main).to_contain_text("kubectl argo rollouts undo ranker")
    expect(page.locator(".act")).to_contain_text("2026.11.3 deployed")
    page.get_by_role("link", name="Instances", exact=True).click()
    hosts = set(
        Instance.objects.filter(version=made.versions["2026.11.3"]).values_list("host", flat=True)
    )
    for host in hosts:
        expect(page.locator("main table").first).to_contain_text(host)


def test_the_evidence_is_one_click_from_the_message_too(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, alert: Alert, made: Made
) -> None:
    page = sign_in(user)
    page.goto(live_server.url + buttons(alert)["View evidence"])
    expect(evidence(page)).to_contain_text(re.compile(r"\+[23]\d%"))
    expect(evidence(page)).to_contain_text("REGRESSED")


def test_the_whole_way_from_the_fleet_to_resolved(
    sign_in: Callable[[User], Page], user: User, alert: Alert, made: Made
) -> None:
    page = sign_in(user)
    page.locator("table.ft").get_by_role("link", name="ranker", exact=True).click()
    page.get_by_role("navigation", name="ranker").get_by_role("link", name="Compare").click()
    expect(evidence(page)).to_contain_text("REGRESSED")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Alerts").click()
    page.locator(".al tr", has_text="A-7").get_by_role("link").first.click()
    for action, answer in (("Acknowledge", "rolling back"), ("Resolve", "rolled back by hand")):
        if action == "Resolve":
            page.locator("summary", has_text="More").click()
        page.get_by_role("button", name=action).click()
        page.get_by_label("Note").fill(answer)
        page.get_by_role("button", name="Add note").click()
        expect(page.locator(".act")).to_contain_text(answer)
    alert.refresh_from_db()
    assert (alert.state, alert.acknowledged_at is not None) == ("resolved", True)
