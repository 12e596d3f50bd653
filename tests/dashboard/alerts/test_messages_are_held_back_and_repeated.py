"""Quiet hours, maintenance, repeats and escalation in the real pipeline: held messages are sent as
one message, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import time as Wall
from datetime import timedelta

import pytest

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery, MaintenanceWindow, Rule
from dashboard.alerts.services import (
    alert_acknowledge,
    channel_create,
    channel_disable,
    deliveries_send,
    enqueue_reminders,
    maintenance_add,
    maintenance_end,
    release_held_deliveries,
)
from dashboard.alerts.tasks import sweep
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.block_kit import message_check, texts_of
from tests.dashboard.alerts.fleet import START, Fleet, Time, evidence_row, fleet_make
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db
HOUR = 3600


@pytest.fixture
def step(time: Time) -> Callable[[float], None]:
    """Advances the clock by `seconds`, then runs the workers until nothing is left to send."""

    def go(seconds: float) -> None:
        time.go(seconds)
        sweep()
        while deliveries_send():
            time.go(1)

    return go


def quiet(channel: Channel, hours: int, **other: object) -> Rule:
    """Quiet hours from the start of the test for this number of hours, in UTC."""
    start = clock.at(START)
    until = (start + timedelta(hours=hours)).time().replace(second=0)
    return Rule.objects.create(
        project=channel.project,
        channel=channel,
        quiet_from=(start - timedelta(hours=1)).time(),
        quiet_until=until,
        **other,
    )


def states() -> list[tuple[str, str]]:
    return list(Delivery.objects.order_by("pk").values_list("kind", "state"))


def test_held_messages_are_sent_as_one_message_in_the_morning(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, step: Callable[[float], None]
) -> None:
    quiet(channel, 8)
    other = fleet_make(fleet.project, "reader")
    second = other.deploy("7")
    fleet.say(new, "watch")
    other.say(second, "watch")
    step(1)
    assert slack.bodies == []
    assert states() == [("opened", "held"), ("opened", "held")]
    fleet.say(new, "healthy")
    step(HOUR)
    assert slack.bodies == []
    step(7 * HOUR)
    assert len(slack.messages) == 1
    message_check(slack.messages[0])
    texts = " ".join(texts_of(slack.messages[0]["blocks"]))
    assert "2 alerts" in slack.titles[0]
    assert "A-2 WATCH, reader 7 in prod" in texts
    assert "A-1 resolved, ranker 2026.11.3 in prod" in texts
    assert {event.alert.number for event in AlertEvent.objects.filter(kind="delivered")} == {1, 2}
    assert {state for _, state in states()} == {"merged", "delivered"}


def test_a_single_held_message_is_sent_unchanged(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, step: Callable[[float], None]
) -> None:
    quiet(channel, 4)
    fleet.say(new, "watch")
    step(1)
    step(4 * HOUR)
    assert slack.titles == ["WATCH A-1: ranker 2026.11.3"]


@pytest.mark.parametrize(("passes", "messages"), [(True, 1), (False, 0)])
def test_roll_back_ignores_quiet_hours_if_the_rule_allows_it(
    passes: bool,
    messages: int,
    fleet: Fleet,
    new: Deployment,
    channel: Channel,
    slack: StandIn,
    step: Callable[[float], None],
) -> None:
    quiet(channel, 8, roll_back_passes=passes)
    fleet.say(new, "roll_back")
    step(1)
    assert len(slack.bodies) == messages


def test_a_window_that_ends_early_releases_its_messages_immediately(
    fleet: Fleet,
    new: Deployment,
    channel: Channel,
    slack: StandIn,
    user: User,
    step: Callable[[float], None],
) -> None:
    now = clock.now()
    window = maintenance_add(
        project=fleet.project,
        starts_at=now,
        ends_at=now + timedelta(hours=5),
        environment="prod",
        model="",
        note="new racks",
        user=user,
    )
    fleet.say(new, "roll_back")
    step(HOUR)
    assert (slack.bodies, states()) == ([], [("opened", "held")])
    maintenance_end(window=MaintenanceWindow.objects.get(pk=window.pk), user=user)
    step(1)
    assert slack.titles == ["ROLL BACK A-1: ranker 2026.11.3"]


def test_it_is_repeated_until_it_is_acknowledged(
    fleet: Fleet,
    new: Deployment,
    channel: Channel,
    slack: StandIn,
    user: User,
    step: Callable[[float], None],
) -> None:
    Rule.objects.create(project=fleet.project, channel=channel, repeat_minutes=30)
    fleet.say(new, "roll_back")
    for _ in range(13):
        step(600)
    again = "Reminder: ROLL BACK A-1: ranker 2026.11.3"
    assert slack.titles == ["ROLL BACK A-1: ranker 2026.11.3", again, again, again, again]
    message_check(slack.messages[-1])
    alert_acknowledge(alert=Alert.objects.get(), user=user)
    step(2 * HOUR)
    assert len(slack.titles) == 5
    assert AlertEvent.objects.filter(kind="repeated").count() == 4


def test_another_channel_is_notified_later_and_also_of_the_end(
    project: Project,
    fleet: Fleet,
    new: Deployment,
    channel: Channel,
    slack: StandIn,
    step: Callable[[float], None],
) -> None:
    boss = channel_create(
        project=project, kind="slack", name="#on-call", address=slack.url, actor_name="tests"
    )
    Rule.objects.create(project=project, channel=channel, escalate_minutes=15, escalate_to=boss)
    fleet.say(new, "roll_back")
    for _ in range(5):
        step(300)
    assert slack.titles == [
        "ROLL BACK A-1: ranker 2026.11.3",
        "Escalated: ROLL BACK A-1: ranker 2026.11.3",
    ]
    fleet.say(new, "healthy")
    step(60)
    assert (
        Delivery.objects.filter(channel=boss).order_by("pk").values_list("kind", flat=True)[1]
        == "resolved"
    )
    assert (
        AlertEvent.objects.get(kind="escalated").text
        == "Not acknowledged for 15 min. Escalated to #on-call."
    )


def test_an_alert_that_gets_worse_after_an_answer_restarts_its_minutes(
    project: Project,
    fleet: Fleet,
    new: Deployment,
    channel: Channel,
    slack: StandIn,
    user: User,
    step: Callable[[float], None],
) -> None:
    boss = channel_create(
        project=project, kind="slack", name="#on-call", address=slack.url, actor_name="tests"
    )
    Rule.objects.create(project=project, channel=channel, escalate_minutes=30, escalate_to=boss)
    fleet.say(new, "watch")
    step(1)
    alert_acknowledge(alert=Alert.objects.get(), user=user)
    step(5 * HOUR)
    fleet.say(new, "roll_back")
    step(1)
    step(20 * 60)
    assert slack.titles == ["WATCH A-1: ranker 2026.11.3", "ROLL BACK A-1: ranker 2026.11.3"]
    assert list(AlertEvent.objects.filter(kind="reopened").values_list("text", flat=True))
    step(15 * 60)
    assert slack.titles[2:] == ["Escalated: ROLL BACK A-1: ranker 2026.11.3"]


@pytest.mark.parametrize("gone", ["before", "after"])
def test_a_channel_that_is_gone_does_not_block_the_escalation(
    gone: str,
    project: Project,
    fleet: Fleet,
    new: Deployment,
    channel: Channel,
    slack: StandIn,
    user: User,
    step: Callable[[float], None],
) -> None:
    boss = channel_create(
        project=project, kind="slack", name="#on-call", address=slack.url, actor_name="tests"
    )
    Rule.objects.create(project=project, channel=channel, escalate_minutes=30, escalate_to=boss)
    if gone == "before":
        channel_disable(channel=channel, user=user)
    else:
        slack.answers.append((410, "no_service", {}))
    fleet.say(new, "roll_back")
    step(1)
    heard = len(slack.titles)
    step(20 * 60)
    assert len(slack.titles) == heard
    step(15 * 60)
    assert slack.titles[heard:] == ["Escalated: ROLL BACK A-1: ranker 2026.11.3"]
    step(HOUR)
    assert len(slack.titles) == heard + 1


@pytest.mark.parametrize("stage", ["reminders._project_remind", "digest._project_release"])
def test_a_failed_project_does_not_block_the_others(
    stage: str,
    fleet: Fleet,
    new: Deployment,
    channel: Channel,
    other_project: Project,
    slack: StandIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, name = stage.split(".")
    seen: list[int] = []

    def fails(project_id: int, *_: object) -> int:
        seen.append(project_id)
        raise RuntimeError

    others = fleet_make(other_project)
    theirs = channel_create(
        project=other_project, kind="slack", name="#theirs", address=slack.url, actor_name="tests"
    )
    for one, deployment, to in ((fleet, new, channel), (others, others.deploy("1"), theirs)):
        Rule.objects.create(project=one.project, channel=to, repeat_minutes=30)
        one.say(deployment, "roll_back")
    sweep()
    Delivery.objects.update(state="held", held_until=clock.now())
    monkeypatch.setattr(f"dashboard.alerts.services.{module}.{name}", fails)
    with pytest.raises(ExceptionGroup):
        (enqueue_reminders if module == "reminders" else release_held_deliveries)()
    assert seen == sorted([fleet.project.pk, other_project.pk])


def test_a_disabled_channel_fails_its_held_messages(
    fleet: Fleet, new: Deployment, channel: Channel, user: User, step: Callable[[float], None]
) -> None:
    Rule.objects.create(
        project=fleet.project,
        channel=channel,
        quiet_from=Wall(0),
        quiet_until=Wall(23, 59),
        roll_back_passes=False,
    )
    fleet.say(new, "roll_back")
    step(1)
    channel_disable(channel=channel, user=user)
    assert states() == [("opened", "dead")]


def test_a_reminder_has_the_values_of_the_alerts_verdict(
    fleet: Fleet,
    old: Deployment,
    new: Deployment,
    channel: Channel,
    slack: StandIn,
    step: Callable[[float], None],
) -> None:
    Rule.objects.create(project=channel.project, channel=channel, repeat_minutes=30)
    said = "Roll back 2026.11.3: p50 is 31% slower (24% to 38%)."
    fleet.say(
        new,
        "roll_back",
        said,
        baseline=old,
        rows=[evidence_row()],
        cause="`f` reached its recompile limit",
    )
    step(1)
    opened = slack.messages[-1]
    fleet.say(
        new,
        "not_enough_data",
        "Gone.",
        baseline=None,
        rows=[evidence_row(label="NOT ENOUGH DATA", drives=False, candidate=0.0145)],
    )
    step(40 * 60)
    again = slack.messages[-1]
    assert again is not opened and "Reminder" in again["text"]
    fields = [
        [field["text"] for block in one["blocks"] for field in block.get("fields", ())]
        for one in (opened, again)
    ]
    assert fields[0] == fields[1] != []
    for part in ("against 2026.11.2", "recompile limit", said):
        assert part in str(again), part
