"""A group message has the worst verdict of each alert, fails like any other message, and leaves
quiet hours as one message."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from dashboard.alerts.models import AlertGroup, Channel, Delivery, Rule
from dashboard.alerts.services import (
    alerts_correlate,
    alerts_sync,
    channel_create,
    deliveries_send,
    enqueue_reminders,
    release_held_deliveries,
)
from dashboard.alerts.services.deliver import RETRY_DELAYS_S, delivery_claim
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import START, Fleet, Time, fleet_make
from tests.dashboard.alerts.slack_server import StandIn

Regress = Callable[..., Deployment]


@pytest.fixture
def hook(project: Project, slack: StandIn, time: Time) -> Channel:
    return channel_create(
        project=project, kind="webhook", name="ci", address=slack.url, actor_name="tests"
    )


@pytest.fixture
def regress(project: Project, time: Time) -> Regress:
    def make(name: str, kind: str = "roll_back") -> Deployment:
        fleet = fleet_make(project, name)
        deployment = fleet.deploy("2")
        fleet.run(deployment, "gpu-7")
        fleet.say(deployment, kind)
        return deployment

    return make


def line(time: Time) -> None:
    """The immediate work of the workers, and their work after the grouping delay."""
    alerts_sync()
    alerts_correlate()
    enqueue_reminders()
    release_held_deliveries()
    deliveries_send()
    time.go(3.1)
    deliveries_send()


def worsen(deployment: Deployment) -> None:
    Fleet(deployment.project, deployment.model).say(deployment, "roll_back")


def quiet(channel: Channel, hours: int) -> None:
    start = clock.at(START)
    until = (start + timedelta(hours=hours)).time().replace(second=0)
    Rule.objects.create(
        project=channel.project,
        channel=channel,
        quiet_from=(start - timedelta(hours=1)).time(),
        quiet_until=until,
    )


def severities(message: dict[str, Any]) -> dict[str, str]:
    return {one["id"]: one["severity"] for one in message["data"]["alerts"]}


def test_a_retry_of_an_older_message_does_not_revoke_a_roll_back(
    project: Project, regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    Rule.objects.create(project=project, channel=hook)
    first = regress("a", "watch")
    alerts_sync()
    alerts_correlate()
    time.go(3.1)
    assert delivery_claim() is not None, "a worker claims the message, and dies"
    worsen(first)
    regress("b", "watch")
    alerts_sync()
    alerts_correlate()
    slack.answers = [(500, "no", {})]
    for _ in range(20):
        time.go(61)
        deliveries_send()
    assert severities(slack.messages[-1]) == {"A-1": "roll_back", "A-2": "watch"}


def test_a_receiver_that_was_down_over_quiet_hours_gets_the_worst_verdict(
    regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    quiet(hook, 1)
    first = regress("a", "watch")
    line(time)
    slack.always = (500, "no", {})
    regress("b")
    worsen(first)
    for _ in range(24):
        line(time)
        time.go(300)
    slack.always = (200, "ok", {})
    told = len(slack.bodies)
    for _ in range(40):
        line(time)
        time.go(300)
    assert severities(slack.messages[told])["A-1"] == "roll_back"


def test_repeated_group_messages_to_a_failing_receiver_fail_like_those_of_one_alert(
    regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    Rule.objects.create(project=hook.project, channel=hook, repeat_minutes=30)
    regress("a")
    regress("b")
    slack.always = (500, "no", {})
    for _ in range(24 * 6):
        line(time)
        time.go(600)
    assert len(slack.bodies) <= len(RETRY_DELAYS_S) + 1


def test_a_receiver_that_is_gone_is_disabled_although_a_group_continues(
    regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    Rule.objects.create(project=hook.project, channel=hook, repeat_minutes=5)
    regress("a")
    regress("b")
    slack.always = (404, "gone", {})
    for _ in range(3 * 12):
        line(time)
        time.go(300)
    hook.refresh_from_db()
    assert not hook.enabled


def test_held_messages_of_members_are_sent_as_one_group(
    regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    quiet(hook, 8)
    regress("a", "watch")
    regress("b", "watch")
    line(time)
    assert slack.bodies == []
    time.go(8 * 3600)
    line(time)
    (message,) = slack.messages
    assert (AlertGroup.objects.count(), message["data"]["group"] is not None) == (1, True)


def test_a_held_message_is_not_sent_after_an_immediate_one(
    regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    quiet(hook, 8)
    first = regress("a", "watch")
    line(time)
    time.go(3600)
    worsen(first)
    line(time)
    time.go(8 * 3600)
    line(time)
    (message,) = slack.messages
    assert message["data"]["alert"]["severity"] == "roll_back"
    assert len(message["data"]["covers"]) == 1
    assert sorted(Delivery.objects.values_list("state", flat=True)) == ["delivered", "merged"]


def test_a_group_message_shows_that_the_alerts_are_not_acknowledged(
    project: Project, regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    boss = channel_create(
        project=project, kind="slack", name="#on-call", address=slack.url, actor_name="tests"
    )
    Rule.objects.create(project=project, channel=hook, escalate_minutes=5, escalate_to=boss)
    Rule.objects.create(project=project, channel=boss, models_named=["c"])
    regress("a")
    regress("b")
    line(time)
    time.go(5 * 60)
    regress("c")
    line(time)
    time.go(10)
    deliveries_send()
    told = str([message["blocks"] for message in slack.messages if "blocks" in message])
    assert "Escalated" in told
