"""With rules, only matching alerts are sent, and only to the rule's channel; without rules, ROLL
BACK goes to every enabled channel."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.accounts.models import User
from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.alerts.models import Alert, AlertState, Channel, Delivery, Rule
from dashboard.alerts.services import alert_acknowledge, alerts_sync, channel_create
from dashboard.alerts.services.deliver import deliveries_send
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, Time, evidence_row
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db


@pytest.fixture
def other(project: Project, channel: Channel, slack: StandIn) -> Channel:
    return channel_create(
        project=project, kind="webhook", name="ci", address=slack.url, actor_name="tests"
    )


def told() -> set[str]:
    return set(Delivery.objects.values_list("channel__name", flat=True))


def test_without_rules_every_channel_is_notified_of_roll_back(
    fleet: Fleet, new: Deployment, channel: Channel, other: Channel
) -> None:
    fleet.say(new, "roll_back")
    alerts_sync()
    assert told() == {"#ranking", "ci"}


def test_without_rules_every_channel_is_notified_of_diverged_ranks_and_of_no_other_watch(
    fleet: Fleet, new: Deployment, channel: Channel, other: Channel
) -> None:
    verdict = fleet.say(new, "watch")
    alerts_sync()
    assert told() == set()
    Alert.objects.all().delete()
    verdict.evidence = {
        **verdict.evidence,
        "facts": [{"kind": "ranks_diverged", "severity": "watch", "about": "step"}],
    }
    verdict.save()
    alerts_sync()
    assert told() == {"#ranking", "ci"}


def test_ranks_that_diverge_under_an_open_or_snoozed_alert_are_notified_once(
    fleet: Fleet, new: Deployment, channel: Channel, user: User, time: Time
) -> None:
    apart = {"kind": "ranks_diverged", "severity": "watch", "about": "step"}
    fleet.say(new, "roll_back")
    alerts_sync()
    alert_acknowledge(alert=Alert.objects.get(), user=user)
    for severity, about, messages in (
        ("known", "step", 1),
        ("watch", "step", 2),
        ("watch", "loss", 2),
    ):
        time.go(60)
        fleet.say(new, "watch", facts=[{**apart, "severity": severity, "about": about}])
        alerts_sync()
        assert Delivery.objects.filter(channel=channel).count() == messages, (severity, about)
    alert = Alert.objects.get()
    assert (alert.state, alert.severity, alert.worst) == (AlertState.OPEN, "watch", "roll_back")


def test_a_message_about_ranks_that_diverged_under_an_open_alert_names_them_first(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    fleet.say(new, "roll_back")
    alerts_sync()
    time.go(5)
    deliveries_send()
    time.go(55)
    apart = {
        "kind": "ranks_diverged",
        "severity": "watch",
        "about": "step",
        "why": "rank 1 compiled another graph",
    }
    changes = [evidence_row(metric) for metric in ("p50", "p99", "errors", "throughput")]
    fleet.say(new, "roll_back", facts=[{**apart, "kind": "stuck_compiling"}, apart], rows=changes)
    alerts_sync()
    time.go(5)
    deliveries_send()
    assert len(slack.bodies) == 2 and b"rank 1 compiled another graph" in slack.bodies[-1]
    lines = select_strongest_evidence(
        {"metrics": changes, "facts": [{**apart, "kind": "stuck_compiling"}, apart]}
    )
    assert [line["metric"] for line in lines][:2] == ["ranks_diverged", "p50"]


def test_a_channel_of_another_project_is_not_notified(
    fleet: Fleet, new: Deployment, channel: Channel, other_project: Project, slack: StandIn
) -> None:
    channel_create(
        project=other_project, kind="slack", name="theirs", address=slack.url, actor_name="tests"
    )
    fleet.say(new, "roll_back")
    alerts_sync()
    assert told() == {"#ranking"}


@pytest.mark.parametrize(
    ("rule", "verdict", "hears"),
    [
        ({}, "watch", True),
        ({"severities": ["watch", "roll_back"]}, "watch", True),
        ({"severities": ["roll_back"]}, "watch", False),
        ({"severities": ["roll_back"], "environments": ["prod"]}, "roll_back", True),
        ({"environments": ["staging"]}, "roll_back", False),
        ({"models_named": ["ranker"]}, "roll_back", True),
        ({"models_named": ["other"]}, "roll_back", False),
    ],
)
def test_a_rule_picks_verdicts_environments_and_models(
    rule: dict[str, Any],
    verdict: str,
    hears: bool,
    fleet: Fleet,
    new: Deployment,
    channel: Channel,
    other: Channel,
) -> None:
    Rule.objects.create(project=fleet.project, channel=channel, **rule)
    fleet.say(new, verdict)
    alerts_sync()
    assert told() == ({"#ranking"} if hears else set())
