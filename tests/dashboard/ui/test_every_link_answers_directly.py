"""Links of notifications, API answers and pages: each answers 200 directly, without a redirect to
another spelling of the address."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

import pytest
from django.conf import settings
from django.test import Client

from dashboard.accounts.models import User
from dashboard.alerts import links
from dashboard.alerts.channels import CHANNELS, Message
from dashboard.alerts.models import Alert, Channel, DeliveryKind
from dashboard.alerts.payloads import (
    GroupPayload,
    MessagePayload,
    build_alert_payload,
    build_channel_test_payload,
    build_digest_payload,
)
from dashboard.common import clock
from dashboard.ingest import urls as ingest_urls
from dashboard.projects.models import Project, Role
from dashboard.projects.services import key_create
from dashboard.regressions.models import Verdict
from tests.dashboard.access.belongings import addresses, belongings, filled, wants
from tests.dashboard.ui import factory, stories

pytestmark = pytest.mark.django_db
OURS = re.compile(rf"{re.escape(settings.BASE_URL)}[^\s\"'<>\\)\]]*")
HREF = re.compile(r'<a\b[^>]*\bhref="([^"#][^"]*)"')
LEAVES = ("account_logout",)
NO_PAGES = ("admin/", *(str(one.pattern) for one in ingest_urls.urlpatterns))
"""The administration has its own markup; the ingest addresses answer no GET."""
SIGNED_OUT = "/accounts/login/"
"""The sign-in page redirects a user who is signed in."""
CHOOSES = {"/", settings.BASE_URL, "/accounts/2fa/totp/activate/"}
"""The root redirects to the user's own project, and account changes ask for the password first."""
KINDS = (
    DeliveryKind.OPENED,
    DeliveryKind.CHANGED,
    DeliveryKind.REPEATED,
    DeliveryKind.ESCALATED,
    DeliveryKind.RESOLVED,
)


def answer(client: Client, link: str) -> int:
    """The status of the first answer, before any redirect."""
    return client.get(link.removeprefix(settings.ORIGIN).partition("#")[0]).status_code


def facts_of(alert: Alert) -> Iterator[tuple[DeliveryKind, MessagePayload]]:
    """All payloads that a notification can carry."""
    channel = Channel(project=alert.project, name="#ranking", kind="slack")
    verdict = Verdict.objects.filter(deployment=alert.deployment).latest("pk")
    facts = build_alert_payload(alert=alert, verdict=verdict)
    yield from ((kind, facts) for kind in KINDS)
    yield DeliveryKind.TEST, build_channel_test_payload(channel=channel)
    yield (
        DeliveryKind.DIGEST,
        build_digest_payload(channel=channel, replaced=[("opened", facts)], covers=[]),
    )
    for link in (
        links.group_url(project=alert.project.slug, group=alert.group_id or 1),
        links.version_alerts_url(project=alert.project.slug, version=alert.deployment.version_id),
    ):
        group = GroupPayload(
            kind="environment",
            title="Possible common cause: 3 alerts share a host",
            alerts=["A-1"],
            link=link,
        )
        yield (
            DeliveryKind.DIGEST,
            build_digest_payload(
                channel=channel, replaced=[("opened", facts)], covers=[], group=group
            ),
        )


@pytest.mark.parametrize("kind", CHANNELS)
def test_links_of_notifications_answer_directly(
    signed_in: Client, project: Project, kind: str
) -> None:
    alert = stories.fleet(project, every=400)
    found: set[str] = set()
    for told, facts in facts_of(alert):
        body = (
            CHANNELS[kind]
            .build(Message(id="m-1", kind=told, at=clock.now(), facts=facts))
            .body.decode()
        )
        here = OURS.findall(json.dumps(json.loads(body), ensure_ascii=False))
        assert here, (told, body)
        found.update(here)
    assert any(link.endswith("/alerts/418/") for link in found), found
    assert {
        link: status for link in sorted(found) if (status := answer(signed_in, link)) != 200
    } == {}


@pytest.fixture
def ids(project: Project, user: User) -> dict[str, Any]:
    key_create(project=project)
    return belongings(project, user, factory.person("guest", project, Role.VIEWER))


def emitted(client: Client, ids: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every internal link in the answers of all addresses, with the address of the answer."""
    for name, route in addresses():
        if name in LEAVES or route.startswith(NO_PAGES) or not wants(route) <= set(ids):
            continue
        address = filled(route, ids)
        got = client.get(address)
        if got.status_code != 200 or got.streaming:
            continue
        text = got.content.decode(errors="replace")
        hrefs = (
            [html.unescape(href) for href in HREF.findall(text)]
            if "text/html" in got["Content-Type"]
            else []
        )
        for link in {
            *OURS.findall(html.unescape(text)),
            *(urljoin(address, href) for href in hrefs),
        }:
            if link.startswith(("/", settings.BASE_URL)) and not link.startswith(
                ("/static/", SIGNED_OUT, "/admin/")
            ):
                yield link, address


def test_links_of_pages_tables_and_the_api_answer_directly(
    signed_in: Client, user: User, ids: dict[str, Any]
) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    found = dict(emitted(signed_in, ids))
    assert len(found) > 150 and any("/api/v1/" in source for source in found.values())
    asked = {link: source for link, source in found.items() if link not in CHOOSES}
    wrong = {
        link: (status, source)
        for link, source in asked.items()
        if (status := answer(signed_in, link)) != 200
    }
    assert wrong == {}


def test_links_of_the_gate_answer_directly(signed_in: Client, project: Project) -> None:
    stories.fleet(project, every=400)
    _, key = key_create(project=project, kind="api")
    said = (
        Client()
        .get(
            "/api/v1/gate?model=ranker&version=2026.11.3&environment=production",
            headers={"authorization": f"Bearer {key}"},
        )
        .json()
    )
    found = [link for name in ("evidence_url", "alert_url") if (link := said.get(name))]
    assert len(found) == 2 and [answer(signed_in, link) for link in found] == [200, 200], said
