"""User-chosen names of models, versions, regions, machines and environments remain plain values in
every message format."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest
import requests
from pytest_django import Settings

from dashboard.alerts.channels.apprise import Apprise
from dashboard.alerts.channels.base import EncodedMessage, Message
from dashboard.alerts.models import Channel
from dashboard.alerts.services import alerts_sync, channel_create, deliveries_send
from dashboard.projects.models import Project
from tests.dashboard.alerts.block_kit import message_check
from tests.dashboard.alerts.fleet import Time, evidence_row, fleet_make
from tests.dashboard.alerts.mail_server import MailStandIn, mail_server
from tests.dashboard.alerts.slack_server import StandIn
from tests.dashboard.alerts.test_webhooks_are_signed import checked
from tests.dashboard.alerts.test_webhooks_can_be_cloudevents import event_of

pytestmark = pytest.mark.django_db
NAMES = {
    "new lines": 'a\r\nX-Evil: yes\r\n\r\n{"type":"alert.resolved"}\n.\nRCPT TO:<x@y>',
    "controls": "a\x01\x07\x1b[31mred\x7f\x85\x9bb\t",
    "directions": "\u202egnp.exe\u202c\u2066x\u2069\u200f\u061c\u200bz",
    "quotes": "\"}],'x':\\\"\\u0022`${jndi:ldap://x}`{{7*7}}%s{version}",
    "calls": "<!channel> <!here|x> <@U012> @everyone <https://evil.example|click>",
    "markup": "<script>alert(1)</script><img src=x onerror=alert(1)>[a](javascript:x) *b* _c_",
    "lines of Unicode": "a\u2028b\u2029c\x0bd\x0ce\x1cf",
    "length": "x" * 10_000,
}


def say(project: Project, name: str, time: Time) -> dict[str, str]:
    """An alert with this text in every field, as far as the field has room."""
    fleet = fleet_make(project, name[:200])
    old, new = fleet.deploy(f"1{name}"[:200]), fleet.deploy(f"2{name}"[:200], environment=name[:64])
    for number in range(2):
        fleet.run(new, f"{number}{name}"[:200])
    fleet.say(
        new,
        "roll_back",
        f"{name} is slow.",
        baseline=old,
        cause=name,
        rows=[evidence_row(region=name), evidence_row("p99", unit=name)],
    )
    alerts_sync()
    time.go(10)
    return {"model": name[:200], "version": f"2{name}"[:200], "environment": name[:64]}


def named(facts: dict[str, Any]) -> dict[str, str]:
    return {
        "model": facts["model"]["name"],
        "version": facts["version"]["name"],
        "environment": facts["environment"],
    }


def hidden(text: str) -> set[str]:
    """Characters that are invisible, end a line or reverse the direction of text."""
    return {
        f"{ord(one):04x}"
        for one in text
        if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }


@pytest.mark.parametrize("kind", ["webhook", "cloudevents"])
@pytest.mark.parametrize("name", NAMES)
def test_in_json(kind: str, name: str, project: Project, slack: StandIn, time: Time) -> None:
    channel_create(project=project, kind=kind, name="hook", address=slack.url, actor_name="tests")
    said = say(project, NAMES[name], time)
    assert deliveries_send() == 1
    body = slack.bodies[0].decode("ascii")
    told = (
        checked(slack.bodies[0])["data"] if kind == "webhook" else event_of(slack.bodies[0])["data"]
    )
    assert named(told) == said
    assert not hidden(body)
    assert len(slack.bodies[0]) < 200_000
    own = {
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
        "content-type",
        "content-length",
        "host",
        "connection",
        "user-agent",
    }
    assert set(slack.headers[0]) <= own | {"accept", "accept-encoding"}
    if kind == "cloudevents":
        event = json.loads(body)
        assert (event["subject"], event["type"]) == ("A-1", "compilewatch.alert.opened")


@pytest.mark.parametrize("name", NAMES)
def test_in_slack(
    name: str, project: Project, channel: Channel, slack: StandIn, time: Time
) -> None:
    say(project, NAMES[name], time)
    assert deliveries_send() == 1
    message = json.loads(slack.bodies[0])
    message_check(message)
    texts = list(texts_of(message))
    assert not hidden("".join(texts)) - {"2060"}, (
        "compilewatch adds the word joiner that breaks mentions"
    )
    assert not [text for text in texts if "<" in text or "@everyone" in text]


def texts_of(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    for inner in (
        part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    ):
        yield from texts_of(inner)


@pytest.fixture
def mail(settings: Settings) -> Iterator[MailStandIn]:
    with mail_server() as server:
        settings.EMAIL_BACKEND = "dashboard.common.smtp_backend.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_USE_TLS = (
            "127.0.0.1",
            server.port,
            False,
        )
        settings.DEFAULT_FROM_EMAIL, settings.MAIL_READY = "compilewatch@example.com", True
        yield server


@pytest.mark.parametrize("name", NAMES)
def test_in_mail(name: str, project: Project, mail: MailStandIn, time: Time) -> None:
    channel_create(
        project=project,
        kind="email",
        name="on call",
        address="oncall@example.com",
        actor_name="tests",
    )
    say(project, NAMES[name], time)
    assert deliveries_send() == 1
    only: EmailMessage = mail.mails[0]
    assert mail.to == ["rcpt TO:<oncall@example.com>"]
    own = {
        "subject",
        "from",
        "to",
        "date",
        "message-id",
        "references",
        "auto-submitted",
        "mime-version",
        "content-type",
    }
    assert {header.lower() for header in only} <= own | {"content-transfer-encoding"}
    assert not hidden(str(only["Subject"])) and len(str(only["Subject"])) <= 150
    lines = only.get_content().splitlines()
    assert not hidden("".join(lines))
    assert not [line for line in lines if line.startswith(("X-Evil", "RCPT", ".", '{"type"'))]


@pytest.mark.parametrize("name", NAMES)
def test_through_apprise(
    name: str, project: Project, settings: Settings, monkeypatch: pytest.MonkeyPatch, time: Time
) -> None:
    """Each fact has its own line: a name cannot add a line that looks like text of compilewatch."""
    settings.APPRISE = ("tgram",)
    sent: list[str] = []

    def request(method: str, url: str, **given: Any) -> requests.Response:
        sent.append(str(given.get("data") or given.get("json")))
        answer = requests.Response()
        answer.status_code, answer._content = 200, b'{"ok": true, "result": []}'
        return answer

    monkeypatch.setattr(
        requests.Session, "post", lambda self, url, **given: request("POST", url, **given)
    )
    monkeypatch.setattr(
        requests.Session, "request", lambda self, *place, **given: request(*place, **given)
    )
    built: list[dict[str, str]] = []
    build = Apprise.build

    def kept(self: Apprise, message: Message) -> EncodedMessage:
        payload = build(self, message)
        built.append(json.loads(payload.body))
        return payload

    monkeypatch.setattr(Apprise, "build", kept)
    channel_create(
        project=project,
        kind="apprise",
        name="x",
        address="tgram://123456789:abcdefg_hijklmnop-qrstuvwxyz01/12315544/",
        actor_name="t",
    )
    say(project, NAMES[name], time)
    assert deliveries_send() == 1 and len(sent) >= 1
    assert not hidden(built[0]["title"]) and len(built[0]["title"]) <= 150
    lines = built[0]["body"].split("\n")
    assert not hidden("".join(lines)) and len(built[0]["body"]) <= 3000
    assert not [line for line in lines if line.startswith(("X-Evil", "RCPT", ".", '{"type"'))]
