"""Slack messages: the verdict first, the strongest evidence, links; within Slack's limits, and
harmless for any text from an agent."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.alerts.models import Alert, Channel, RollbackGuide
from dashboard.alerts.services import alerts_sync, channel_create, channel_test, deliveries_send
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.block_kit import message_check, texts_of
from tests.dashboard.alerts.fleet import Fleet, Time, evidence_row, fleet_make
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db

EAGER = evidence_row(
    "eager",
    unit="share",
    baseline=0.0,
    candidate=0.041,
    change=None,
    low=None,
    high=None,
    affected_instances=2,
    affected_share=1 / 3,
)
HOSTILE = [
    "<!channel> and <!here|x> and <@U012> and <#C012>",
    "@channel @here @everyone @channels",
    "<https://evil.example|click>",
    "&lt;!channel&gt; &amp; &",
    "\u202egnp.exe\u2066\u200b\u2028",
    "\x00\x07\x1b[31m\r\n\t",
    "<script>alert(1)</script>",
    "*bold* _it_ `code` ~no~ :tada:",
    "😀" * 3000,
    "<" * 3000,
    "&" * 3000,
    "x" * 100000,
    "\ud800",
    "",
    " ",
    "javascript:alert(1)",
    "' OR 1=1 --",
    "{version} {baseline} {0} %s %(x)s ${x}",
]


def received(slack: StandIn) -> dict[str, Any]:
    deliveries_send()
    message = slack.messages[-1]
    message_check(message)
    return message


def test_a_message_has_verdict_place_evidence_time_and_runbook(
    fleet: Fleet, old: Deployment, new: Deployment, channel: Channel, slack: StandIn
) -> None:
    RollbackGuide.objects.create(
        project=fleet.project,
        model_name="ranker",
        text="Set image to {baseline}.",
        url="https://wiki.example/back?to={baseline}",
    )
    sentence = "Roll back 2026.11.3: p50 is 31% slower (24% to 38%)."
    fleet.say(
        new,
        "roll_back",
        sentence,
        baseline=old,
        cause="`forward` reached its recompile limit",
        rows=[EAGER, evidence_row()],
    )
    alerts_sync()
    message = received(slack)
    header, what, evidence, cause, context, actions = message["blocks"]
    assert header["text"]["text"] == "ROLL BACK A-1: ranker 2026.11.3 against 2026.11.2"
    assert what["text"]["text"] == sentence
    assert [field["text"].replace("\u00a0", " ") for field in evidence["fields"]] == [
        "Eager calls, forward: 4.1% of calls (before: 0%); 2 of 6 instances",
        "p50, forward: +31% (24% to 38%), 14 ms to 18.3 ms; 6 instances against 6",
    ]
    assert cause["text"]["text"] == "Cause: `forward` reached its recompile limit"
    notes = [element["text"] for element in context["elements"]]
    assert notes[0] == "A-1 in prod, project Ranking"
    assert notes[2].startswith("since 2026-11-")
    assert notes[-1] == "rollback runbook: Set image to 2026.11.2."
    base = "http://127.0.0.1:8000/p/ranking"
    compare = f"{base}/models/{new.model_id}/compare?a={old.version_id}&b={new.version_id}"
    assert [(button["text"]["text"], button["url"]) for button in actions["elements"]] == [
        ("View evidence", compare),
        ("Acknowledge", f"{base}/alerts/1/"),
        ("Rollback runbook", "https://wiki.example/back?to=2026.11.2"),
    ]
    assert message["text"] == f"ROLL BACK A-1: ranker 2026.11.3 against 2026.11.2: {sentence}"


def test_a_simulated_alert_is_marked_as_simulated(
    project: Project, channel: Channel, slack: StandIn
) -> None:
    demo = fleet_make(project, "demo", simulated=True)
    demo.say(demo.deploy("2"), "roll_back")
    alerts_sync()
    message = received(slack)
    assert message["blocks"][0]["text"]["text"].startswith("Simulated: ROLL BACK")
    assert message["text"].startswith("Simulated: ")
    assert any(text.startswith("simulated data") for text in texts_of(message["blocks"]))


def test_a_real_fleet_is_not_marked_as_simulated(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn
) -> None:
    fleet.say(new, "roll_back")
    alerts_sync()
    received(slack)
    assert b"imulated" not in slack.bodies[0]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_harmless_in_every_field(
    text: str, project: Project, channel: Channel, slack: StandIn, time: Time
) -> None:
    stored = text.replace("\x00", "").replace("\ud800", "")
    fleet = fleet_make(project, stored[:200])
    old, new = fleet.deploy(stored[:190] + "1"), fleet.deploy(stored[:190], environment=stored[:64])
    RollbackGuide.objects.create(
        project=project, model_name=stored[:200], text=stored, url="https://wiki.example/{version}"
    )
    rows = [
        evidence_row(stored[:500], region=stored, unit=stored, label=stored),
        evidence_row("p99", region=stored),
    ]
    fleet.say(new, "roll_back", stored, baseline=old, cause=stored, rows=rows)
    alerts_sync()
    received(slack)
    fleet.say(new, "healthy", stored)
    alerts_sync()
    time.go(1)
    received(slack)
    assert len(slack.bodies) == 2


@pytest.mark.parametrize(
    "evidence",
    [{}, [], None, "x", {"metrics": None}, {"metrics": ["x", 3, None]}, {"metrics": [{}]}, {"evidence": [{"metric": 3, "change": "x"}]},
     {"metrics": [{"metric": "p50", "change": 1e308, "low": -5, "high": True, "drives": 1}]}],
)  # fmt: skip
def test_evidence_of_another_shape_does_not_stop_the_message(
    evidence: Any, fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn
) -> None:
    verdict = fleet.say(new, "roll_back")
    type(verdict).objects.filter(pk=verdict.pk).update(
        evidence=evidence if evidence is not None else {"metrics": None}
    )
    alerts_sync()
    received(slack)
    assert Alert.objects.count() == 1


def test_throughput_is_shown_with_its_own_direction(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn
) -> None:
    row = evidence_row(
        "throughput",
        unit="items/s",
        baseline=1400.0,
        candidate=1120.0,
        change=0.25,
        low=0.11,
        high=0.43,
        worse=-1,
    )
    fleet.say(new, "roll_back", rows=[row])
    alerts_sync()
    [field] = received(slack)["blocks"][2]["fields"]
    said = "Throughput, forward: \u221220% (\u221230% to \u221210%), 1,400 items/s to 1,120 items/s; 6 instances against 6"
    assert field["text"].replace("\u00a0", " ") == said


def test_a_test_message_is_delivered_like_any_other(channel: Channel, slack: StandIn) -> None:
    channel_test(channel=channel, actor_name="test")
    message = received(slack)
    assert message["blocks"][0]["text"]["text"] == "Test notification from compilewatch, Ranking"
    assert [button["url"] for button in message["blocks"][-1]["elements"]] == [
        "http://127.0.0.1:8000/p/ranking/"
    ]


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com/services/x",
        "http://hooks.slack.com/services/x",
        "https://127.0.0.1/x",
        "x",
        "",
    ],
)
def test_an_address_that_is_not_slacks_is_refused_on_creation(
    address: str, project: Project
) -> None:
    with pytest.raises(ValueError, match=r"^address: "):
        channel_create(project=project, kind="slack", name="x", address=address, actor_name="tests")
    assert not Channel.objects.exists()
