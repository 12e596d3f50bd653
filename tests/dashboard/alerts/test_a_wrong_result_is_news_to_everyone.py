"""A wrong result is news even after an operator answered another alert: the alert, the channels and
the gate name the wrong result first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashboard.accounts.models import User
from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.alerts.models import Alert, AlertState, Channel, Delivery, EventKind
from dashboard.alerts.services.actions import alert_acknowledge, alert_dismiss
from dashboard.alerts.services.channels import (
    channel_create,
    channel_disable,
    channel_enable,
    channel_give_up,
)
from dashboard.alerts.services.deliver import deliveries_send
from dashboard.alerts.services.sync import alerts_sync
from dashboard.api.gate import GateResult, evaluate_gate
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.regressions.baseline_choices import ACCEPT
from dashboard.regressions.models import BaselineChoice, Verdict
from tests.dashboard.alerts.fleet import Fleet, Time, evidence_row
from tests.dashboard.alerts.slack_server import StandIn

WRONG = "Roll back 2026.11.3: compiled output of `batch` differs from eager."
SLOWER = "p50 rose by 31%."


def fact(about: str = "batch", severity: str = "roll_back", kind: str = "parity") -> dict[str, Any]:
    """A fact in the judge's format."""
    told = {
        "kind": kind,
        "severity": severity,
        "about": about,
        "why": "output is off by 1.2",
        "since": 0,
        "instances": ["a", "b"],
    }
    return {
        **told,
        "count": 2,
        "on_baseline": 0,
        "places": ["gpu-1 / 0"],
        "passed": 0,
        "passed_on_baseline": 1,
    }


def line(time: Time) -> None:
    """The work of the workers in one minute."""
    alerts_sync()
    time.go(5)
    deliveries_send()
    time.go(55)


Gated = Callable[[], GateResult]


@pytest.fixture
def gate(new: Deployment) -> Gated:
    return lambda: evaluate_gate(
        project_id=new.project_id, model="ranker", version="2026.11.3", environment="prod"
    )


def test_a_dismissed_slower_version_opens_again_when_its_result_is_wrong(
    fleet: Fleet,
    new: Deployment,
    channel: Channel,
    slack: StandIn,
    time: Time,
    user: User,
    gate: Gated,
) -> None:
    fleet.say(new, "roll_back", SLOWER)
    line(time)
    alert_dismiss(alert=Alert.objects.get(), user=user, note="We accept slower.")
    line(time)
    assert gate().state == "pass"
    told = len(slack.bodies)
    fleet.say(new, "roll_back", WRONG, facts=[fact()])
    line(time)
    assert [alert.state for alert in Alert.objects.order_by("number")] == [
        AlertState.RESOLVED,
        AlertState.OPEN,
    ]
    assert len(slack.bodies) == told + 1
    assert b"differs from eager" in slack.bodies[-1]
    assert (gate().state, gate().reasons[0]["code"]) == ("fail", "parity")


def test_a_wrong_result_marked_as_a_false_positive_does_not_notify_again(
    fleet: Fleet,
    new: Deployment,
    channel: Channel,
    slack: StandIn,
    time: Time,
    user: User,
    gate: Gated,
) -> None:
    fleet.say(new, "roll_back", WRONG, facts=[fact()])
    line(time)
    alert_dismiss(alert=Alert.objects.get(), user=user, note="The batch is wrong.")
    line(time)
    for _ in range(3):
        fleet.say(new, "roll_back", WRONG, facts=[fact()])
        line(time)
    assert (Alert.objects.count(), gate().state) == (1, "pass")
    fleet.say(new, "roll_back", WRONG, facts=[fact(), fact("another batch")])
    line(time)
    assert (Alert.objects.count(), gate().state) == (2, "fail")


def test_an_answered_alert_reopens_and_notifies(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time, user: User
) -> None:
    fleet.say(new, "roll_back", SLOWER)
    line(time)
    alert_acknowledge(alert=Alert.objects.get(), user=user)
    fleet.say(new, "roll_back", SLOWER)
    line(time)
    told = len(slack.bodies)
    for _ in range(3):
        fleet.say(new, "roll_back", WRONG, facts=[fact()])
        line(time)
    alert = Alert.objects.get()
    assert alert.state == AlertState.OPEN
    assert list(alert.events.values_list("kind", flat=True)).count(EventKind.REOPENED) == 1
    assert len(slack.bodies) == told + 1
    assert Verdict.objects.filter(deployment=new).count() == 3


def test_an_accepted_version_does_not_pass_the_gate_when_its_result_is_wrong(
    fleet: Fleet, new: Deployment, time: Time, gate: Gated
) -> None:
    fleet.say(new, "roll_back", SLOWER)
    of = {"project": new.project, "model": new.model, "version": new.version, "environment": "prod"}
    BaselineChoice.objects.create(kind=ACCEPT, chosen_at=clock.now(), chosen_by_name="ada", **of)
    time.go(600)
    fleet.say(new, "roll_back", SLOWER)
    assert gate().state == "pass"
    fleet.say(new, "roll_back", WRONG, facts=[fact()])
    assert gate().state == "fail"


def test_the_first_reason_is_the_wrong_result_and_not_another_difference() -> None:
    quiet = evidence_row("compile_time", drives=False, label="NO CHANGE", change=0.12)
    (wrong,) = select_strongest_evidence({"evidence": [quiet], "facts": [fact()]})
    words = (
        "compiled output of `batch` differs from eager: output is off by 1.2, on 2\u00a0instances"
    )
    assert (wrong["metric"], wrong["name"], wrong["text"]) == ("parity", "Wrong result", words)
    both = select_strongest_evidence(
        {
            "evidence": [evidence_row(), quiet],
            "facts": [fact(), fact("x", "watch", "stuck_compiling")],
        }
    )
    assert [one["metric"] for one in both] == ["parity", "p50", "stuck_compiling"]
    assert [
        one["metric"]
        for one in select_strongest_evidence(
            {"evidence": [evidence_row()], "facts": [fact(severity="known"), 7]}
        )
    ] == ["p50"]


def test_an_automatically_disabled_channel_gets_the_alerts_it_missed(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time, user: User
) -> None:
    channel_give_up(channel=channel, reason="It answered 410.")
    fleet.say(new, "roll_back", SLOWER)
    line(time)
    channel.refresh_from_db()
    assert (slack.bodies, Delivery.objects.count()) == ([], 0)
    channel_enable(channel=channel, user=user)
    channel_enable(channel=channel, user=user)
    line(time)
    assert (len(slack.bodies), Delivery.objects.get().state) == (1, "delivered")
    channel_disable(channel=channel, user=user)
    Delivery.objects.all().delete()
    channel.refresh_from_db()
    channel_enable(channel=channel, user=user)
    assert Delivery.objects.count() == 0


@pytest.mark.parametrize(("status", "state"), [(400, "dead"), (422, "dead"), (500, "waiting")])
def test_a_webhook_that_refuses_one_message_blocks_no_other(
    status: int, state: str, fleet: Fleet, new: Deployment, slack: StandIn, time: Time
) -> None:
    hook = channel_create(
        project=new.project, kind="webhook", name="ci", address=slack.url, actor_name="tests"
    )
    slack.always = (status, "no", {})
    fleet.say(new, "roll_back", SLOWER)
    line(time)
    hook.refresh_from_db()
    assert (Delivery.objects.get().state, hook.enabled) == (state, True)
