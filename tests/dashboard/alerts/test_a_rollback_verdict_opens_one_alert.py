"""One alert per deployment: it opens with a bad verdict, follows the verdicts, and sends one
message, however often the sweep runs."""

from __future__ import annotations

import pytest

from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery
from dashboard.alerts.services import alerts_sync, deliveries_send
from dashboard.fleet.models import Deployment
from tests.dashboard.alerts.fleet import Fleet, Time, evidence_row, fleet_make
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db


def kinds(alert: Alert) -> list[str]:
    return list(
        AlertEvent.objects.filter(alert=alert).order_by("pk").values_list("kind", flat=True)
    )


def test_repeated_sweeps_make_one_alert_and_one_message(
    fleet: Fleet, old: Deployment, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    verdict = fleet.say(new, "roll_back", "Roll back 2026.11.3: p50 is 31% slower.", baseline=old)
    for _ in range(5):
        alerts_sync()
        deliveries_send()
        time.go(1)
    alert = Alert.objects.get()
    assert (alert.number, alert.severity, alert.state, alert.verdict) == (
        1,
        "roll_back",
        "open",
        verdict,
    )
    assert alert.title == "ranker 2026.11.3: p50 31% slower"
    assert AlertEvent.objects.get(kind="opened").text == verdict.sentence
    assert kinds(alert) == ["opened", "delivered"]
    assert slack.titles == ["ROLL BACK A-1: ranker 2026.11.3 against 2026.11.2"]
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts, delivery.last_status, delivery.last_answer) == (
        "delivered",
        1,
        200,
        "ok",
    )


def test_the_sweep_returns_the_number_of_changes(fleet: Fleet, new: Deployment) -> None:
    assert alerts_sync() == 0
    fleet.say(new, "roll_back")
    assert (alerts_sync(), alerts_sync()) == (1, 0)


def test_watch_is_on_the_page_and_sends_nothing(
    fleet: Fleet, new: Deployment, channel: Channel
) -> None:
    fleet.say(new, "watch")
    alerts_sync()
    assert (Alert.objects.get().severity, Delivery.objects.count()) == ("watch", 0)


@pytest.mark.parametrize("kind", ["healthy", "not_enough_data"])
def test_other_verdicts_open_nothing(kind: str, fleet: Fleet, new: Deployment) -> None:
    fleet.say(new, kind)
    alerts_sync()
    assert not Alert.objects.exists()


def test_an_ended_version_opens_nothing(fleet: Fleet, new: Deployment) -> None:
    fleet.say(new, "roll_back")
    fleet.end(new)
    alerts_sync()
    assert not Alert.objects.exists()


def test_watch_that_becomes_roll_back_sends_its_first_message(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    fleet.say(new, "watch")
    alerts_sync()
    time.go(60)
    fleet.say(new, "roll_back")
    alerts_sync()
    deliveries_send()
    alert = Alert.objects.get()
    assert (alert.severity, alert.worst) == ("roll_back", "roll_back")
    assert kinds(alert) == ["opened", "verdict", "delivered"]
    assert list(Delivery.objects.values_list("kind", flat=True)) == ["opened"]


def test_every_change_is_in_the_timeline_even_without_a_sweep_in_between(
    fleet: Fleet, new: Deployment, channel: Channel
) -> None:
    fleet.say(new, "watch")
    alerts_sync()
    for kind in ("roll_back", "watch", "not_enough_data", "roll_back"):
        fleet.say(new, kind)
    alerts_sync()
    alert = Alert.objects.get()
    events = AlertEvent.objects.filter(alert=alert, verdict__isnull=False).order_by("pk")
    assert [event.verdict.kind for event in events if event.verdict] == [
        "watch",
        "roll_back",
        "watch",
        "not_enough_data",
        "roll_back",
    ]
    assert all(event.verdict and event.verdict.evidence for event in events)
    assert list(Delivery.objects.order_by("pk").values_list("kind", flat=True)) == [
        "opened",
        "changed",
    ]


def test_an_hourly_row_of_the_same_verdict_adds_an_event_only_for_another_metric(
    fleet: Fleet, new: Deployment, time: Time
) -> None:
    fleet.say(new, "roll_back")
    alerts_sync()
    for rows in ([evidence_row()], [evidence_row(), evidence_row("eager", change=None)]):
        time.go(3700)
        fleet.say(new, "roll_back", rows=rows)
        alerts_sync()
    assert kinds(Alert.objects.get()) == ["opened", "evidence"]


def test_two_deployments_have_two_alerts_numbered_within_their_project(
    fleet: Fleet, old: Deployment, new: Deployment
) -> None:
    for deployment in (old, new):
        fleet.say(deployment, "roll_back")
    alerts_sync()
    assert sorted(Alert.objects.values_list("number", flat=True)) == [1, 2]


def test_numbers_of_another_project_begin_at_one(
    fleet: Fleet, new: Deployment, other_project: object
) -> None:
    elsewhere = fleet_make(other_project)  # type: ignore[arg-type]
    fleet.say(new, "roll_back")
    elsewhere.say(elsewhere.deploy("1"), "roll_back")
    alerts_sync()
    assert sorted(Alert.objects.values_list("project_id", "number")) == sorted(
        [(fleet.project.pk, 1), (elsewhere.project.pk, 1)]
    )


def test_a_failed_deployment_does_not_block_the_others(
    fleet: Fleet,
    old: Deployment,
    new: Deployment,
    channel: Channel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dashboard.alerts.services import enqueue

    facts = vars(enqueue)["build_alert_payload"]

    def failing(*, alert: Alert, **other: object) -> object:
        if alert.deployment_id == old.pk:
            raise RuntimeError("no facts")
        return facts(alert=alert, **other)

    monkeypatch.setattr(enqueue, "build_alert_payload", failing)
    for deployment in (old, new):
        fleet.say(deployment, "roll_back")
    with pytest.raises(ExceptionGroup):
        alerts_sync()
    assert [alert.deployment_id for alert in Alert.objects.all()] == [new.pk]
