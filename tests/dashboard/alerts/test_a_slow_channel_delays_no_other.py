"""A slow receiver delays only its own messages, and gets them one after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from dashboard.alerts.models import Channel, Delivery
from dashboard.alerts.services import alerts_sync, channel_create, channel_test, deliveries_send
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.slack_server import StandIn, stand_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def receivers(settings: Settings) -> Iterator[list[StandIn]]:
    """Three servers that the operator allowed."""
    with stand_in() as slow, stand_in() as quick, stand_in() as failing:
        servers = [slow, quick, failing]
        settings.OUTBOUND_ALLOW = tuple(f"127.0.0.1:{server.port}" for server in servers)
        yield servers


def test_other_channels_continue_while_one_is_slow(
    project: Project, receivers: list[StandIn], time: Time
) -> None:
    slow, quick, failing = receivers
    rows = [
        channel_create(
            project=project, kind="webhook", name="cd", address=server.url, actor_name="tests"
        )
        for server in receivers
    ]
    owed = [
        [channel_test(channel=row, actor_name="tests") for _ in range(count)]
        for row, count in zip(rows, (2, 3, 1), strict=True)
    ]
    everything_else, seen = threading.Event(), []
    slow.pause = lambda: seen.append((everything_else.wait(20), len(slow.bodies)))
    quick.pause = lambda: time.go(10) if len(quick.bodies) == 3 else None
    failing.pause = lambda: everything_else.set() if len(failing.bodies) == 2 else None
    failing.answers = [(500, "not yet", {})]
    assert deliveries_send() == 6
    assert seen == [(True, 1), (True, 2)]
    for server, messages in ((slow, owed[0]), (quick, owed[1])):
        assert [headers["webhook-id"] for headers in server.headers] == [
            message.message_id for message in messages
        ]
    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}


def test_a_channel_gets_one_message_at_a_time(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    """An alert overtakes a test message that waits for its retry. A message in flight comes first,
    and Slack's pace applies between the two."""
    channel_test(channel=channel, actor_name="tests")
    fleet.say(new, "roll_back")
    alerts_sync()
    under_way, most = [0], [0]

    def pause() -> None:
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        threading.Event().wait(0.2)
        under_way[0] -= 1

    slack.pause = pause
    assert (deliveries_send(), len(slack.bodies)) == (1, 1)
    time.go(1)
    assert (deliveries_send(), len(slack.bodies), most) == (1, 2, [1])
