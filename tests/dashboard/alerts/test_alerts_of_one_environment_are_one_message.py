"""Alerts that open together on the same machines are one group and one message per channel; each
alert keeps its own state."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert, AlertEvent, AlertGroup, Channel, Delivery, Rule
from dashboard.alerts.services import (
    alert_dismiss,
    alerts_correlate,
    alerts_sync,
    channel_create,
    deliveries_send,
    enqueue_reminders,
)
from dashboard.alerts.services.enqueue import GROUPING_DELAY
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.block_kit import message_check
from tests.dashboard.alerts.fleet import Fleet, Time, fleet_make
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db
Regress = Callable[..., Deployment]


@pytest.fixture
def hook(project: Project, slack: StandIn, time: Time) -> Channel:
    return channel_create(
        project=project, kind="webhook", name="ci", address=slack.url, actor_name="tests"
    )


@pytest.fixture
def regress(project: Project, time: Time) -> Regress:
    """`regress("a", "gpu-7")` writes a ROLL BACK verdict for a version of its own model on that
    machine."""

    def make(
        name: str, host: str, kind: str = "roll_back", environment: str = "prod", **ran_on: str
    ) -> Deployment:
        fleet = fleet_make(project, name)
        deployment = fleet.deploy("2", environment)
        fleet.run(deployment, host, **ran_on)
        fleet.say(deployment, kind)
        return deployment

    return make


def follow(time: Time) -> int:
    """The work of the workers in the next few seconds."""
    alerts_sync()
    alerts_correlate()
    sent = deliveries_send()
    time.go(GROUPING_DELAY.total_seconds() + 0.1)
    return sent + deliveries_send()


def kinds(slack: StandIn) -> list[str]:
    return [message["type"] for message in slack.messages]


def test_deployments_on_one_machine_are_one_group_and_one_message_a_channel(
    regress: Regress, channel: Channel, hook: Channel, slack: StandIn, time: Time
) -> None:
    regress("a", "gpu-7")
    regress("b", "gpu-7", "watch")
    regress("c", "gpu-7")
    assert follow(time) == 2
    [to_slack] = [message for message in slack.messages if "blocks" in message]
    [to_hook] = [message for message in slack.messages if "data" in message]
    message_check(to_slack)
    title = "possible common cause: 3 alerts share machine gpu-7, GPU NVIDIA H100, torch 2.11"
    assert to_slack["blocks"][0]["text"]["text"] == f"ROLL BACK, {title}, Ranking"
    links = [block["accessory"]["url"] for block in to_slack["blocks"] if "accessory" in block]
    assert [link.rpartition("/p/")[2] for link in links] == [
        "ranking/alerts/1/",
        "ranking/alerts/3/",
    ]
    data = to_hook["data"]
    assert (to_hook["type"], data["group"]["kind"], data["group"]["alerts"]) == (
        "alerts.digest",
        "environment",
        ["A-1", "A-2", "A-3"],
    )
    assert [line["id"] for line in data["alerts"]] == ["A-1", "A-3"]
    group = AlertGroup.objects.get()
    assert group.title == "P" + title[1:]
    assert set(Alert.objects.values_list("group", flat=True)) == {group.pk}
    assert set(Delivery.objects.exclude(kind="digest").values_list("state", flat=True)) == {
        "merged"
    }


def test_alerts_that_share_nothing_remain_separate_messages(
    regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    regress("a", "gpu-7")
    regress("b", "gpu-8", gpu="NVIDIA A100")
    for name in "cdefgh":
        fleet = fleet_make(Project.objects.get(), name)
        fleet.run(fleet.deploy("1"), f"calm-{name}")
        fleet.run(fleet.deploy("2"), f"calm-{name}", gpu="NVIDIA A100")
    assert follow(time) == 2
    assert kinds(slack) == ["alert.opened", "alert.opened"]
    assert not AlertGroup.objects.exists()
    assert [message["data"].get("group") for message in slack.messages] == [None, None]


def test_a_roll_back_is_sent_within_seconds_however_many_may_follow(
    regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    assert GROUPING_DELAY.total_seconds() <= 3
    regress("a", "gpu-7")
    assert follow(time) == 1
    time.go(60)
    regress("b", "gpu-7")
    assert follow(time) == 1
    assert kinds(slack) == ["alert.opened", "alert.opened"]
    assert slack.messages[0]["data"]["alert"]["id"] == "A-1"
    assert slack.messages[1]["data"]["group"]["alerts"] == ["A-1", "A-2"]
    grouped = (
        AlertEvent.objects.filter(kind="grouped")
        .order_by("alert__number")
        .values_list("text", flat=True)
    )
    shared = "Shared: machine gpu-7, GPU NVIDIA H100, torch 2.11."
    assert list(grouped) == [
        f"Opened within 10 min of A-2. {shared}",
        f"Opened within 10 min of A-1. {shared}",
    ]


def test_an_alert_with_unknown_machines_is_sent_immediately(
    fleet: Fleet, new: Deployment, hook: Channel, slack: StandIn
) -> None:
    fleet.say(new, "roll_back")
    alerts_sync()
    assert deliveries_send() == 1


def test_members_recover_one_by_one_and_each_end_is_notified(
    regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    rows = [regress(name, "gpu-7") for name in "abc"]
    follow(time)
    time.go(600)
    fleet = Fleet(rows[0].project, rows[0].model)
    for at, row in enumerate(rows):
        fleet.say(row, "healthy")
        follow(time)
        time.go(600)
        states = list(Alert.objects.order_by("number").values_list("state", flat=True))
        assert states == ["resolved"] * (at + 1) + ["open"] * (2 - at)
    assert kinds(slack) == ["alerts.digest", *["alert.resolved"] * 3]
    assert [message["data"]["alert"]["id"] for message in slack.messages[1:]] == [
        "A-1",
        "A-2",
        "A-3",
    ]
    assert all(message["data"]["group"]["kind"] == "environment" for message in slack.messages[1:])


def test_members_that_recover_together_are_one_message(
    regress: Regress, channel: Channel, slack: StandIn, time: Time
) -> None:
    rows = [regress(name, "gpu-7") for name in "abc"]
    follow(time)
    fleet = Fleet(rows[0].project, rows[0].model)
    for row in rows[:2]:
        fleet.say(row, "healthy")
    follow(time)
    assert slack.titles[-1].startswith(
        "2 resolved, possible common cause: 3 alerts share machine gpu-7"
    )
    message_check(slack.messages[-1])
    assert len(slack.messages) == 2


def test_an_alert_that_ends_before_its_message_is_sent_as_resolved(
    regress: Regress, hook: Channel, slack: StandIn, time: Time, user: User
) -> None:
    rows = [regress(name, "gpu-7") for name in "abc"]
    alerts_sync()
    alerts_correlate()
    alert_dismiss(alert=Alert.objects.get(deployment=rows[1]), user=user, note="a test")
    follow(time)
    [message] = slack.messages
    assert [(line["id"], line["kind"]) for line in message["data"]["alerts"]] == [
        ("A-1", "opened"),
        ("A-3", "opened"),
        ("A-2", "resolved"),
    ]
    assert len(message["data"]["covers"]) == 4
    assert set(Alert.objects.values_list("group__title", flat=True)) == {
        AlertGroup.objects.get().title
    }


def test_a_message_includes_changes_until_it_arrives(
    regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    rows = [regress(name, "gpu-7") for name in "ab"]
    slack.answers = [(500, "not yet", {})] * 2
    follow(time)
    Fleet(rows[0].project, rows[0].model).say(rows[0], "healthy")
    regress("c", "gpu-7")
    alerts_sync()
    alerts_correlate()
    time.go(600)
    deliveries_send()
    time.go(600)
    deliveries_send()
    last = slack.messages[-1]["data"]
    assert [(line["id"], line["kind"]) for line in last["alerts"]] == [
        ("A-2", "opened"),
        ("A-3", "opened"),
        ("A-1", "resolved"),
    ]
    assert Delivery.objects.filter(state="delivered").count() == 1
    assert set(last["covers"]) == set(
        Delivery.objects.filter(state="merged").values_list("message_id", flat=True)
    )
    assert AlertEvent.objects.filter(kind="delivered").count() == 3


def test_reminders_of_a_group_are_one_message(
    regress: Regress, hook: Channel, slack: StandIn, time: Time
) -> None:
    Rule.objects.create(project=hook.project, channel=hook, repeat_minutes=30)
    for name in "abc":
        regress(name, "gpu-7")
    follow(time)
    time.go(1801)
    assert enqueue_reminders() == 3
    follow(time)
    assert kinds(slack) == ["alerts.digest", "alerts.digest"]
    assert {line["kind"] for line in slack.messages[-1]["data"]["alerts"]} == {"repeated"}


def test_one_version_in_several_environments_is_one_message(
    fleet: Fleet, channel: Channel, slack: StandIn, time: Time
) -> None:
    for environment in ("staging", "prod"):
        deployment = fleet.deploy("2.1", environment)
        fleet.run(deployment, f"{environment}-1")
        fleet.say(deployment, "roll_back")
    follow(time)
    assert slack.titles == ["ROLL BACK, ranker 2.1 in 2 environments: prod, staging, Ranking"]
    message_check(slack.messages[0])
    assert not AlertGroup.objects.exists()
    time.go(3600)
    deployment = fleet.deploy("2.1", "canary")
    fleet.say(deployment, "roll_back")
    follow(time)
    notes = [part["text"] for part in slack.messages[-1]["blocks"][-2]["elements"]]
    assert "ranker 2.1 in 3 environments: canary, prod, staging (A-1, A-2, A-3)" in notes


def test_two_groups_that_turn_out_to_be_one_become_one(regress: Regress, time: Time) -> None:
    for name, host in (("a", "gpu-1"), ("b", "gpu-1"), ("c", "gpu-2"), ("d", "gpu-2")):
        regress(name, host, gpu=host, driver=name)
    for fleet in (fleet_make(Project.objects.get(), name) for name in "stuvwxyz"):
        fleet.run(fleet.deploy("1"), "calm", "gpu-1")
    alerts_sync()
    alerts_correlate()
    assert AlertGroup.objects.count() == 2
    both = regress("e", "gpu-1", gpu="gpu-3", driver="e")
    Fleet(both.project, both.model).run(both, "gpu-2", "gpu-3", driver="e")
    alerts_sync()
    assert (alerts_correlate(), alerts_correlate()) == (1, 0)
    assert (
        AlertGroup.objects.get().title
        == "Possible common cause: 5 alerts share machine gpu-1 (3 of 5), machine gpu-2 (3 of 5), GPU "
        "gpu-2 (2 of 5)"
    )
    assert AlertEvent.objects.filter(kind="grouped").count() == 5


def test_the_same_change_of_driver_is_shared(
    project: Project, hook: Channel, slack: StandIn, time: Time
) -> None:
    differs = [
        {"key": "driver", "baseline": [["570", 4]], "candidate": [["580", 3], ["570", 1]]},
        {"key": "x"},
        "odd",
    ]
    for name in "abcdefgh":
        fleet = fleet_make(project, name)
        deployment = fleet.deploy("2")
        fleet.run(deployment, f"host-{name}")
        if name in "ab":
            fleet.say(deployment, "roll_back", differs=differs)
    follow(time)
    assert (
        slack.messages[0]["data"]["group"]["title"]
        == "Possible common cause: 2 alerts share driver 570 to 580"
    )


def test_names_from_users_remain_text(
    regress: Regress, channel: Channel, hook: Channel, slack: StandIn, time: Time
) -> None:
    host = "<!channel> \u202e*x* `rm` <https://evil.example|here>\n" + "&" * 100
    regress("<b>&amp;", host)
    regress("@here", host)
    follow(time)
    for message in slack.messages:
        if "blocks" in message:
            message_check(message)
    assert len(slack.messages) == 2
