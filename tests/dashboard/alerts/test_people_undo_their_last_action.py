"""Undo restores an alert as it was before the last action of the same person; the timeline and the
audit log keep both changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashboard.accounts.models import AuditEntry, User
from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery
from dashboard.alerts.services import (
    AlertActionError,
    acceptance_undo,
    alert_acknowledge,
    alert_dismiss,
    alert_note,
    alert_resolve,
    alert_snooze,
    alert_undo,
    alerts_sync,
    deliveries_send,
)
from dashboard.alerts.services.actions import describe_state
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.regressions.baseline_choices import baseline_choose
from dashboard.regressions.models import BaselineChoice
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db


@pytest.fixture
def alert(fleet: Fleet, new: Deployment) -> Alert:
    fleet.say(new, "roll_back")
    alerts_sync()
    return Alert.objects.get()


def snooze(*, alert: Alert, user: User) -> Alert:
    return alert_snooze(alert=alert, user=user, until=clock.at(clock.unix() + 3600))


@pytest.mark.parametrize("act", [alert_acknowledge, snooze, alert_resolve, alert_dismiss])
def test_each_action_is_undone_with_both_changes_recorded(
    alert: Alert, user: User, act: Callable[..., Alert]
) -> None:
    before = describe_state(alert)
    act(alert=alert, user=user)
    held = alert_undo(alert=alert, user=user, address="10.0.0.9")
    held.refresh_from_db()
    assert describe_state(held) == before and held.resolved_at is None
    undone = AuditEntry.objects.get(action="alert.undo")
    action = AuditEntry.objects.exclude(pk=undone.pk).latest("pk")
    assert undone.after["undone"] == action.action and undone.address == "10.0.0.9"  # type: ignore[index]
    assert AlertEvent.objects.get(kind="undone").actor_name == "ada"
    with pytest.raises(AlertActionError, match="no action of yours"):
        alert_undo(alert=alert, user=user)


def test_an_undone_resolution_is_sent_to_the_channels(
    channel: Channel, slack: StandIn, alert: Alert, user: User
) -> None:
    deliveries_send()
    alert_dismiss(alert=alert, user=user)
    alert_undo(alert=alert, user=user)
    kinds = list(Delivery.objects.order_by("pk").values_list("kind", flat=True))
    assert kinds == ["opened", "resolved", "changed"]


def test_an_acknowledgement_of_another_person_is_restored(
    alert: Alert, user: User, make_user: Callable[..., User], project: Any
) -> None:
    other = make_user("grace", project)
    alert_acknowledge(alert=alert, user=other)
    at = Alert.objects.get().acknowledged_at
    alert_resolve(alert=alert, user=user)
    held = alert_undo(alert=alert, user=user)
    assert (held.state, held.owner, held.acknowledged_at) == ("acknowledged", other, at)


def test_the_action_of_another_person_is_not_undone(
    alert: Alert, user: User, make_user: Callable[..., User], project: Any
) -> None:
    alert_dismiss(alert=alert, user=user)
    with pytest.raises(AlertActionError, match="no action of yours"):
        alert_undo(alert=alert, user=make_user("grace", project))
    assert Alert.objects.get().outcome == "dismissed"


def test_an_action_is_not_undone_after_ten_minutes(alert: Alert, user: User, time: Time) -> None:
    alert_dismiss(alert=alert, user=user)
    time.go(660)
    with pytest.raises(AlertActionError, match="no action of yours"):
        alert_undo(alert=alert, user=user)


def test_an_alert_that_changed_since_is_not_undone(alert: Alert, user: User) -> None:
    alert_acknowledge(alert=alert, user=user)
    Alert.objects.update(state="open")
    with pytest.raises(AlertActionError, match="has changed since"):
        alert_undo(alert=alert, user=user)


def test_an_alert_with_a_successor_stays_resolved(alert: Alert, user: User) -> None:
    alert_resolve(alert=alert, user=user)
    twin = Alert.objects.get()
    twin.pk, twin.number, twin.state, twin.outcome, twin.resolved_at = None, 2, "open", "", None
    twin.save(force_insert=True)
    with pytest.raises(AlertActionError, match="a newer alert of this version is open"):
        alert_undo(alert=alert, user=user)


def test_a_note_is_added_afterwards_and_does_not_prevent_undo(alert: Alert, user: User) -> None:
    alert_dismiss(alert=alert, user=user)
    alert_note(alert=alert, user=user, note="the load test did it")
    assert AlertEvent.objects.get(kind="note").text == "the load test did it"
    assert alert_undo(alert=alert, user=user).state == "open"
    with pytest.raises(AlertActionError, match="enter a note"):
        alert_note(alert=alert, user=user, note=" ")


def test_an_acceptance_is_undone_with_its_alerts_and_the_choice_before(
    alert: Alert, user: User, old: Deployment
) -> None:
    def choose(version: str, kind: str, note: str = "") -> BaselineChoice:
        return baseline_choose(
            model=alert.deployment.model,
            environment=alert.deployment.environment,
            version=version,
            kind=kind,
            note=note,
            actor=user,
        )

    choose(old.version.name, "pin")
    choice = choose(alert.deployment.version.name, "accept", "a larger model")
    assert Alert.objects.get().outcome == "accepted"
    acceptance_undo(choice=choice, user=user)
    assert Alert.objects.get().state == "open"
    active = BaselineChoice.objects.get(ended_at=None)
    assert (active.kind, active.version) == ("pin", old.version)
    choice.refresh_from_db()
    with pytest.raises(AlertActionError, match="can no longer be undone"):
        acceptance_undo(choice=choice, user=user)
