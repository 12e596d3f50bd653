"""Apprise is a kind of channel if the operator allows schemas; its addresses are secrets, and its
text is the same as for every channel."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from pytest_django import Settings

from dashboard.alerts.channels import list_channel_kinds
from dashboard.alerts.models import Delivery
from dashboard.alerts.selectors import mask_channel_address
from dashboard.alerts.services import alerts_sync, channel_create, channel_test, deliveries_send
from dashboard.environment.settings import SettingError, env_read
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, Time

pytestmark = pytest.mark.django_db
TOKEN = "123456789:abcdefg_hijklmnop-qrstuvwxyz01"
ADDRESS = f"tgram://{TOKEN}/12315544/"


class Service:
    """Replaces the service: the requests of Apprise, and the answers."""

    def __init__(self) -> None:
        self.status, self.seen = 200, []

    def __call__(self, method: str, url: str, **given: Any) -> requests.Response:
        self.seen.append((urlsplit(url).hostname, str(given.get("data") or given.get("json"))))
        answer = requests.Response()
        answer.status_code, answer._content = self.status, b'{"ok": true, "result": []}'
        return answer


@pytest.fixture
def service(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Service:
    settings.APPRISE = ("tgram", "pover")
    found = Service()
    monkeypatch.setattr(requests.Session, "request", found)
    return found


def test_a_message_goes_to_the_fixed_host_and_a_refusal_is_retried(
    fleet: Fleet, old: Deployment, new: Deployment, project: Project, service: Service, time: Time
) -> None:
    channel = channel_create(
        project=project, kind="apprise", name="on call", address=ADDRESS, actor_name="tests"
    )
    fleet.say(new, "roll_back", "p50 rose by 31%.", baseline=old)
    alerts_sync()
    service.status = 500
    assert deliveries_send() == 0
    service.status = 200
    time.go(30)
    assert deliveries_send() == 1
    assert {host for host, _ in service.seen} == {"api.telegram.org"}
    assert (
        "ROLL BACK A-1: ranker 2026.11.3 against 2026.11.2" in service.seen[-1][1]
        and "p50 rose by 31" in service.seen[-1][1]
    )
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == ("delivered", 2)
    assert TOKEN not in "".join(
        delivery.tries.values_list("answer", flat=True)
    ) + mask_channel_address(channel=channel)


def test_nothing_is_sent_to_a_schema_that_is_no_longer_allowed(
    project: Project, service: Service, settings: Settings, time: Time
) -> None:
    channel = channel_create(
        project=project, kind="apprise", name="on call", address=ADDRESS, actor_name="tests"
    )
    settings.APPRISE = ("pover",)
    channel_test(channel=channel, actor_name="tests")
    deliveries_send()
    assert (Delivery.objects.get().state, service.seen) == ("dead", [])


@pytest.mark.parametrize(
    "address",
    [
        "json://127.0.0.1/",
        "https://example.com/",
        "tgram://",
        "tgram:///",
        f"{ADDRESS}?verify=no",
        f"{ADDRESS}?overflow=split&format=html",
        f"{ADDRESS}#x",
        f"{ADDRESS} json://127.0.0.1/",
        f"{ADDRESS},json://127.0.0.1/",
        f"{ADDRESS}\njson://127.0.0.1/",
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
        "TGRAM://x/y",
    ],
)
def test_other_addresses_are_refused_or_resolve_to_the_fixed_host(
    address: str, project: Project, service: Service, time: Time
) -> None:
    try:
        channel = channel_create(
            project=project, kind="apprise", name="x", address=address, actor_name="tests"
        )
    except ValueError as error:
        assert str(error).startswith("address: ")
    else:
        channel_test(channel=channel, actor_name="tests")
        deliveries_send()
    assert {host for host, _ in service.seen} <= {"api.telegram.org"}


def test_without_the_operators_permission_the_kind_does_not_exist(
    project: Project, settings: Settings
) -> None:
    assert "apprise" not in dict(list_channel_kinds())
    with pytest.raises(ValueError, match="COMPILEWATCH_APPRISE"):
        channel_create(
            project=project, kind="apprise", name="x", address=ADDRESS, actor_name="tests"
        )
    settings.APPRISE = ("tgram",)
    assert "apprise" in dict(list_channel_kinds())
    with pytest.raises(
        SettingError, match="COMPILEWATCH_APPRISE is 'json', expected schemas out of tgram"
    ):
        env_read({"COMPILEWATCH_APPRISE": "tgram, json"})


def test_names_from_jobs_remain_text_for_a_service_with_markup(
    fleet: Fleet, old: Deployment, new: Deployment, project: Project, service: Service, time: Time
) -> None:
    channel_create(
        project=project, kind="apprise", name="on call", address=ADDRESS, actor_name="tests"
    )
    link = "<a href='https://elsewhere.example'>Acknowledge</a>"
    fleet.say(
        new,
        "roll_back",
        f"`<lambda>` reached its recompile limit (guard: 2 <= L['x'].size()[0] < 8) {link}",
        baseline=old,
    )
    alerts_sync()
    assert deliveries_send() == 1
    told = service.seen[-1][1]
    assert "&lt;lambda&gt;" in told and "2 &lt;= L" in told and "&lt;a href" in told
    assert "<a href" not in told
