"""An alert resolves when its version recovers or ends, states the reason, and notifies every
channel that was notified of it."""

from __future__ import annotations

import pytest

from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery
from dashboard.alerts.services import alerts_sync, deliveries_send
from dashboard.fleet.models import Deployment
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db


def opened(fleet: Fleet, new: Deployment) -> Alert:
    fleet.say(new, "roll_back", "Roll back 2026.11.3: p50 is 31% slower.")
    alerts_sync()
    deliveries_send()
    return Alert.objects.get()


def test_it_recovers(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    alert = opened(fleet, new)
    time.go(1800)
    fleet.say(new, "healthy", "No regression above 6% in 2 h.")
    for _ in range(3):
        alerts_sync()
        deliveries_send()
    alert.refresh_from_db()
    assert (alert.state, alert.outcome, alert.severity) == ("resolved", "recovered", "roll_back")
    assert slack.titles == ["ROLL BACK A-1: ranker 2026.11.3", "Resolved: A-1 ranker 2026.11.3"]
    texts = [
        block["text"]["text"] for block in slack.messages[1]["blocks"] if block["type"] == "section"
    ]
    assert texts == [
        "No regression above 6% in 2 h.",
        "Original alert: Roll back 2026.11.3: p50 is 31% slower.",
    ]


def test_too_little_data_alone_is_no_recovery(fleet: Fleet, new: Deployment) -> None:
    alert = opened(fleet, new)
    fleet.say(new, "not_enough_data")
    alerts_sync()
    alert.refresh_from_db()
    assert (alert.state, alert.severity) == ("open", "roll_back")


def test_traffic_that_returns_to_the_earlier_version_is_a_rollback(
    fleet: Fleet, old: Deployment, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    alert = opened(fleet, new)
    time.go(600)
    fleet.say(new, "not_enough_data")
    fleet.end(new)
    alerts_sync()
    deliveries_send()
    alert.refresh_from_db()
    assert (alert.state, alert.outcome) == ("resolved", "rolled_back")
    events = AlertEvent.objects.filter(alert=alert).order_by("pk").values_list("kind", "text")
    assert ("rollback_seen", "2026.11.3 was rolled back. Traffic returned to 2026.11.2.") in list(
        events
    )
    assert slack.messages[1]["blocks"][1]["text"]["text"] == "Traffic returned to 2026.11.2."


def test_a_later_version_replaces_it(
    fleet: Fleet, old: Deployment, new: Deployment, time: Time
) -> None:
    alert = opened(fleet, new)
    fleet.end(old)
    time.go(600)
    fleet.deploy("2026.11.4")
    fleet.end(new)
    alerts_sync()
    alert.refresh_from_db()
    assert alert.outcome == "replaced"


def test_another_environment_is_not_where_the_traffic_went(
    fleet: Fleet, old: Deployment, new: Deployment
) -> None:
    alert = opened(fleet, new)
    fleet.end(old)
    fleet.deploy("2026.11.1", environment="staging")
    fleet.end(new)
    alerts_sync()
    alert.refresh_from_db()
    assert alert.outcome == "stopped"


def test_a_channel_without_a_message_gets_none_about_the_end(
    fleet: Fleet, new: Deployment, channel: Channel
) -> None:
    fleet.say(new, "watch")
    alerts_sync()
    fleet.say(new, "healthy")
    alerts_sync()
    assert (Alert.objects.get().state, Delivery.objects.count()) == ("resolved", 0)


def test_undelivered_messages_of_a_resolved_alert_become_one_message(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    slack.answers = [(503, "later", {})]
    alert = opened(fleet, new)
    time.go(1)
    fleet.say(new, "healthy", "No regression above 6%.")
    alerts_sync()
    slack.bodies.clear()
    time.go(30)
    deliveries_send()
    first, last = Delivery.objects.filter(alert=alert).order_by("pk")
    assert (first.state, last.state, last.facts["covers"]) == (
        "merged",
        "delivered",
        [first.message_id],
    )
    assert slack.titles == ["Resolved: A-1 ranker 2026.11.3"]
    assert "replaces 1 undelivered notification" in slack.bodies[0].decode()


def test_it_opens_again_after_a_healthy_verdict_in_between(fleet: Fleet, new: Deployment) -> None:
    opened(fleet, new)
    fleet.say(new, "healthy")
    alerts_sync()
    fleet.say(new, "roll_back")
    alerts_sync()
    assert list(Alert.objects.order_by("number").values_list("number", "state")) == [
        (1, "resolved"),
        (2, "open"),
    ]


def test_it_opens_again_if_one_sweep_reads_the_healthy_and_the_bad_verdict(
    fleet: Fleet, new: Deployment
) -> None:
    opened(fleet, new)
    fleet.say(new, "healthy")
    fleet.say(new, "roll_back")
    for _ in range(2):
        alerts_sync()
    assert list(Alert.objects.order_by("number").values_list("number", "state")) == [
        (1, "resolved"),
        (2, "open"),
    ]
