"""Acknowledge, snooze, resolve, false positive: each action adds one timeline event and one audit
entry, or is refused with a reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dashboard.accounts.models import AuditEntry, User
from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery
from dashboard.alerts.services import (
    AlertActionError,
    alert_acknowledge,
    alert_dismiss,
    alert_resolve,
    alert_snooze,
    alerts_sync,
    deliveries_send,
)
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db


@pytest.fixture
def alert(fleet: Fleet, new: Deployment) -> Alert:
    fleet.say(new, "watch")
    alerts_sync()
    return Alert.objects.get()


def audited(action: str) -> Any:
    """An audit entry whose before and after can be compared."""
    return AuditEntry.objects.get(action=action)


def test_acknowledging_names_the_owner(alert: Alert, user: User) -> None:
    held = alert_acknowledge(alert=alert, user=user, note="looking", address="10.0.0.9")
    assert (held.state, held.owner, held.acknowledged_at) == ("acknowledged", user, clock.now())
    event = AlertEvent.objects.get(kind="acknowledged")
    assert (event.text, event.actor_name) == ("looking", "ada")
    entry = audited("alert.acknowledge")
    assert (entry.subject, entry.before["state"], entry.after["state"], entry.address) == (
        "alert A-1",
        "open",
        "acknowledged",
        "10.0.0.9",
    )
    with pytest.raises(AlertActionError, match="already assigned to you"):
        alert_acknowledge(alert=alert, user=user)
    assert AlertEvent.objects.filter(kind="acknowledged").count() == 1


def test_an_acknowledged_alert_that_gets_worse_reopens(
    alert: Alert, user: User, fleet: Fleet, new: Deployment, channel: Channel
) -> None:
    alert_acknowledge(alert=alert, user=user)
    fleet.say(new, "roll_back")
    alerts_sync()
    alert.refresh_from_db()
    assert (alert.state, Delivery.objects.count()) == ("open", 1)


def test_a_snoozed_alert_reopens_in_time(alert: Alert, user: User, time: Time) -> None:
    alert_snooze(alert=alert, user=user, until=clock.now() + timedelta(hours=1))
    alerts_sync()
    alert.refresh_from_db()
    assert alert.state == "snoozed"
    time.go(3601)
    alerts_sync()
    alert.refresh_from_db()
    assert (alert.state, alert.snoozed_until) == ("open", None)
    assert AlertEvent.objects.filter(kind="reopened").count() == 1


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(hours=-1), timedelta(days=8)])
def test_a_snooze_ends_within_seven_days(ahead: timedelta, alert: Alert, user: User) -> None:
    with pytest.raises(AlertActionError, match="until"):
        alert_snooze(alert=alert, user=user, until=clock.now() + ahead)
    assert not AuditEntry.objects.filter(action="alert.snooze").exists()


def test_a_false_positive_stays_quiet(
    alert: Alert, user: User, fleet: Fleet, new: Deployment, channel: Channel, time: Time
) -> None:
    held = alert_dismiss(alert=alert, user=user, note="load test")
    assert (held.state, held.outcome, audited("alert.dismiss").after["note"]) == (
        "resolved",
        "dismissed",
        "load test",
    )
    for kind in ("watch", "healthy", "watch"):
        time.go(3700)
        fleet.say(new, kind)
        alerts_sync()
    assert Alert.objects.count() == 1
    fleet.say(new, "roll_back")
    alerts_sync()
    assert list(Alert.objects.order_by("number").values_list("number", "severity")) == [
        (1, "watch"),
        (2, "roll_back"),
    ]


def test_a_person_resolves_it_and_the_channel_gets_the_name(
    user: User, fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    fleet.say(new, "roll_back")
    alerts_sync()
    deliveries_send()
    alert_resolve(alert=Alert.objects.get(), user=user, note="fixed by hand")
    time.go(2)
    deliveries_send()
    assert slack.messages[1]["blocks"][1]["text"]["text"] == "Resolved by ada: fixed by hand"
    time.go(3700)
    fleet.say(new, "roll_back")
    alerts_sync()
    assert Alert.objects.count() == 1


def test_a_resolved_alert_refuses_further_actions(alert: Alert, user: User) -> None:
    alert_resolve(alert=alert, user=user)
    for action in (alert_acknowledge, alert_resolve):
        with pytest.raises(AlertActionError, match="A-1 is already resolved"):
            action(alert=alert, user=user)
    assert AuditEntry.objects.filter(subject="alert A-1").count() == 1


def test_the_end_of_a_snooze_notifies_the_channels_that_got_the_alert(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, user: User, time: Time
) -> None:
    fleet.say(new, "roll_back")
    alerts_sync()
    deliveries_send()
    alert_snooze(alert=Alert.objects.get(), user=user, until=clock.now() + timedelta(hours=1))
    time.go(3601)
    alerts_sync()
    assert list(Delivery.objects.order_by("pk").values_list("kind", flat=True)) == [
        "opened",
        "changed",
    ]
    alerts_sync()
    assert Delivery.objects.count() == 2
