"""A server clock that is temporarily hours ahead delays no message by hours, in any state of the
message."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard.alerts.models import Channel, Delivery
from dashboard.alerts.services import alerts_sync, channel_test, deliveries_send
from dashboard.alerts.services.deliver import delivery_claim
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.slack_server import StandIn

HOURS = 5 * 3600.0

pytestmark = pytest.mark.django_db


def owe(channel: Channel) -> Delivery:
    return channel_test(channel=channel, actor_name="test")


def test_the_pace_of_a_channel(channel: Channel, slack: StandIn, time: Time) -> None:
    time.go(HOURS)
    owe(channel)
    assert deliveries_send() == 1
    time.go(1 - HOURS)
    owe(channel)
    assert deliveries_send() == 1


def test_a_message_that_failed_meanwhile(channel: Channel, slack: StandIn, time: Time) -> None:
    slack.answers = [(500, "oops", {})]
    time.go(HOURS)
    owe(channel)
    assert deliveries_send() == 0
    time.go(1 - HOURS)
    assert deliveries_send() == 1


def test_a_message_that_was_queued_meanwhile(channel: Channel, slack: StandIn, time: Time) -> None:
    time.go(HOURS)
    owe(channel)
    time.go(1 - HOURS)
    assert deliveries_send() == 1


def test_a_message_whose_worker_ended_meanwhile(
    channel: Channel, slack: StandIn, time: Time
) -> None:
    time.go(HOURS)
    owe(channel)
    assert delivery_claim() is not None
    time.go(1 - HOURS)
    assert deliveries_send() == 1


def test_a_wait_that_slack_asked_for_and_a_lease_are_kept(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    """Counterpart: with a correct clock a postponed message stays postponed, and so does an alert
    that may overtake a test message."""
    slack.answers = [(429, "slow down", {"Retry-After": "7200"})]
    owe(channel)
    assert deliveries_send() == 0
    fleet.say(new, "roll_back")
    alerts_sync()
    for _ in range(7):
        time.go(1000)
        assert deliveries_send() == 0
    time.go(201)
    assert deliveries_send() == 1
    time.go(2)
    assert delivery_claim() is not None
    time.go(59)
    assert delivery_claim() is None
    assert (
        Delivery.objects.filter(
            leased_until__gt=clock.now(), leased_until__lte=clock.now() + timedelta(seconds=2)
        ).count()
        == 1
    )
