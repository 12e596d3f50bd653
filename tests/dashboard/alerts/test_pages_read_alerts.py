"""Selectors for pages: open alerts with the worst first, counts, one alert of this project only,
its timeline and deliveries."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from dashboard.accounts.models import AuditEntry, User
from dashboard.alerts import selectors
from dashboard.alerts.models import Channel
from dashboard.alerts.services import alert_acknowledge, alert_resolve, alerts_sync, deliveries_send
from dashboard.alerts.tasks import deliver, sweep
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db


def test_open_alerts_come_worst_first_and_are_counted(
    fleet: Fleet, old: Deployment, new: Deployment, user: User
) -> None:
    third = fleet.deploy("2026.11.4")
    for deployment, kind in ((old, "roll_back"), (new, "watch"), (third, "watch")):
        fleet.say(deployment, kind)
        alerts_sync()
    project = fleet.project
    assert [alert.number for alert in selectors.list_open_alerts(project=project)] == [1, 3, 2]
    assert selectors.count_open_alerts_by_model(project=project) == {fleet.model.pk: 3}
    alert_acknowledge(alert=selectors.list_open_alerts(project=project)[1], user=user)
    alert_resolve(alert=selectors.list_open_alerts(project=project)[0], user=user)
    assert selectors.count_alerts_by_state(project=project) == {
        "open": 1,
        "acknowledged": 1,
        "snoozed": 0,
    }
    assert [alert.number for alert in selectors.list_alerts(project=project)] == [3, 2, 1]


def test_an_alert_of_another_project_is_not_found(
    fleet: Fleet, new: Deployment, other_project: Project
) -> None:
    fleet.say(new, "roll_back")
    alerts_sync()
    assert selectors.find_alert(project=other_project, number=1) is None
    alert = selectors.find_alert(project=fleet.project, number=1)
    assert alert is not None
    assert selectors.find_deployment_alert(deployment=new) == alert


def test_the_timeline_and_the_deliveries_of_an_alert(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn
) -> None:
    fleet.say(new, "roll_back")
    sweep()
    deliver()
    alert = selectors.find_alert(project=fleet.project, number=1)
    assert alert is not None
    assert [event.kind for event in selectors.list_alert_events(alert=alert)] == [
        "delivered",
        "opened",
    ]
    [delivery] = selectors.list_alert_deliveries(alert=alert)
    assert [entry.status for entry in delivery.tries.all()] == [200]


def test_a_channels_address_is_never_shown_in_full(channel: Channel, slack: StandIn) -> None:
    shown = selectors.mask_channel_address(channel=channel)
    assert shown == "127.0.0.1/\u2026/FEMI"
    assert channel.address not in shown


def test_the_command_adds_a_channel_and_tests_it(project: Project, slack: StandIn) -> None:
    out = StringIO()
    call_command("channel_add", "webhook", slack.url, "--name", "ci", "--test", stdout=out)
    channel = Channel.objects.get()
    assert (channel.name, channel.kind, channel.secret in out.getvalue()) == ("ci", "webhook", True)
    assert deliveries_send() == 1
    entry = AuditEntry.objects.get(action="channel.create")
    assert (entry.actor_name, slack.url in str(entry.after)) == ("channel_add", False)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["slack", "https://example.com/"], "address: The address of a Slack channel"),
        (["webhook", "http://10.0.0.1/"], "address: The address must start with https://"),
        (
            ["webhook", "https://example.com/", "--project", "none"],
            "--project: project none not found",
        ),
    ],
)
def test_the_command_refuses_with_a_reason(
    arguments: list[str], reason: str, project: Project
) -> None:
    with pytest.raises(CommandError, match=reason):
        call_command("channel_add", *arguments, stdout=StringIO())
    assert not Channel.objects.exists()
