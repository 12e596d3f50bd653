"""Instances that stop reporting together are one alert of the fleet or of a model, which ends when
they report again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert, Channel, Rule
from dashboard.alerts.services import alert_resolve, alerts_sync, deliveries_send, silences_watch
from dashboard.alerts.services.silence import reset_watch_times
from dashboard.common import clock
from dashboard.fleet.models import Deployment, Instance
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, Time, fleet_make
from tests.dashboard.alerts.slack_server import StandIn
from tests.dashboard.api.reading import ROOT, read

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def watched(time: Time) -> Iterator[None]:
    """This process has checked for ten minutes."""
    reset_watch_times()
    for _ in range(40):
        silences_watch()
        time.go(15)
    yield
    reset_watch_times()


def running(fleet: Fleet, count: int, version: str = "1") -> list[Instance]:
    deployment = Deployment.objects.filter(
        model=fleet.model, version__name=version
    ).first() or fleet.deploy(version)
    return [fleet.run(deployment, f"{fleet.model.name}-{number}") for number in range(count)]


def report(*instances: Instance) -> None:
    Instance.objects.filter(pk__in=[one.pk for one in instances]).update(last_seen_at=clock.now())


def look(time: Time, seconds: float, *reporting: Instance) -> None:
    """Advances the clock while these instances keep reporting."""
    for _ in range(int(seconds // 15)):
        time.go(15)
        report(*reporting)
        silences_watch()
    alerts_sync()


def fleets(project: Project, count: int, each: int = 4) -> list[list[Instance]]:
    return [running(fleet_make(project, f"model-{number:02}"), each) for number in range(count)]


def test_a_silent_fleet_is_one_alert_that_is_sent_without_a_rule(
    project: Project, channel: Channel, slack: StandIn, time: Time
) -> None:
    everyone = [one for group in fleets(project, 40) for one in group]
    look(time, 240)
    alert = Alert.objects.get()
    assert (alert.cause, alert.severity, alert.title) == (
        "fleet_silence",
        "watch",
        "160 of 160 instances of the fleet stopped reporting",
    )
    assert "of 40 models sent their last report at" in alert.events.get().text
    time.go(10)
    deliveries_send()
    assert slack.titles == ["WATCH A-1: 160 of 160 instances of the fleet stopped reporting"]
    look(time, 3600)
    report(*everyone)
    look(time, 30, *everyone)
    alert.refresh_from_db()
    assert (alert.state, alert.outcome) == ("resolved", "recovered")
    deliveries_send()
    assert slack.titles[1:] == ["Resolved: A-1 160 of 160 instances of the fleet stopped reporting"]


def test_no_program_reads_the_silence_of_a_fleet_as_the_silence_of_one_model(
    project: Project, time: Time, api_key: str
) -> None:
    fleets(project, 5)
    look(time, 240)
    alert, headers = Alert.objects.get(), {"authorization": f"Bearer {api_key}"}
    [told] = read(Client(), f"{ROOT}/alerts", key=api_key)["items"]
    assert (
        told["cause"],
        told["model"],
        told["model_id"],
        told["version"],
        told["environment"],
    ) == ("fleet_silence", *[None] * 4)
    assert (
        read(Client(), f"{ROOT}/alerts", key=api_key, model=alert.deployment.model_id)["items"]
        == []
    )
    metrics = Client().get("/metrics", headers=headers).content.decode()
    assert (
        'compilewatch_alerts_unresolved{model="",project="ranking",severity="watch"} 1.0' in metrics
    )


def test_one_silent_model_of_several_has_its_own_alert(
    project: Project, time: Time, channel: Channel, slack: StandIn
) -> None:
    quiet, *others = fleets(project, 4)
    going = [one for group in others for one in group]
    look(time, 240, *going)
    alert = Alert.objects.get()
    assert (alert.cause, alert.deployment.model.name, alert.title) == (
        "silence", "model-00", "model-00: 4 of 4 instances stopped reporting",
    )  # fmt: skip
    deliveries_send()
    assert not slack.titles, "without rules WATCH is not sent"
    look(time, 30, *going, *quiet)
    alert.refresh_from_db()
    assert alert.outcome == "recovered"


def test_a_rule_for_one_model_matches_the_silence_of_the_fleet(
    project: Project, channel: Channel, slack: StandIn, time: Time
) -> None:
    fleets(project, 2)
    Rule.objects.create(
        project=project, channel=channel, severities=["watch"], models_named=["model-01"]
    )
    look(time, 240)
    time.go(10)
    deliveries_send()
    assert len(slack.titles) == 1


def test_the_alert_of_a_model_becomes_the_alert_of_the_fleet(project: Project, time: Time) -> None:
    _first, second, third = fleets(project, 3)
    look(time, 240, *second, *third)
    assert Alert.objects.get().cause == "silence"
    look(time, 300, *third)
    alert = Alert.objects.exclude(state="resolved").get()
    assert (alert.number, alert.cause) == (1, "fleet_silence")
    assert Alert.objects.count() == 1


def test_half_of_the_instances_or_a_single_one_opens_nothing(project: Project, time: Time) -> None:
    four, other = fleets(project, 2)
    look(time, 600, *four[:2], *other)
    alone = running(fleet_make(project, "alone"), 1)
    look(time, 600, *four[:2], *other)
    assert alone and not Alert.objects.exists()


def test_a_reported_end_is_no_silence(project: Project, time: Time) -> None:
    group, other = fleets(project, 2)
    Instance.objects.filter(pk__in=[one.pk for one in group]).update(
        ended_at=clock.now() + timedelta(seconds=1), exit_code=0
    )
    look(time, 900, *other)
    assert not Alert.objects.exists()


def test_a_rollout_that_kills_its_old_processes_is_no_silence(fleet: Fleet, time: Time) -> None:
    old = running(fleet, 10)
    look(time, 600, *old)
    new = running(fleet, 8, "2")
    look(time, 900, *new)
    assert not Alert.objects.exists()


def test_instances_that_stop_one_by_one_are_no_common_silence(fleet: Fleet, time: Time) -> None:
    group = running(fleet, 6)
    for left in range(5, 1, -1):
        look(time, 420, *group[:left])
    assert not Alert.objects.exists()


def test_a_process_that_has_just_started_opens_nothing(project: Project, time: Time) -> None:
    fleets(project, 2)
    time.go(1200)
    reset_watch_times()
    silences_watch()
    look(time, 120)
    assert not Alert.objects.exists(), "agents may still send stored reports"
    look(time, 120)
    assert Alert.objects.count() == 1


def test_an_alert_that_a_person_resolved_does_not_open_again(
    project: Project, time: Time, make_user: object
) -> None:
    everyone = [one for group in fleets(project, 2) for one in group]
    look(time, 240)
    person = User.objects.create_user(username="somebody")
    alert_resolve(alert=Alert.objects.get(), user=person, note="planned")
    look(time, 300)
    assert Alert.objects.count() == 1
    report(*everyone)
    look(time, 300)
    assert Alert.objects.count() == 2, "they reported after that: another silence"


def test_the_alert_of_a_verdict_stays_open_while_its_instances_are_silent(
    fleet: Fleet, time: Time
) -> None:
    group = running(fleet, 3)
    deployment = Deployment.objects.get()
    fleet.say(deployment, "roll_back", "Roll back 1: p50 is 31% slower.")
    alerts_sync()
    look(time, 2400)
    fleet.end(deployment)
    alerts_sync()
    regression = Alert.objects.get(cause="regression")
    assert regression.state == "open", "the traffic of silent instances is unknown"
    look(time, 60, *group)
    alerts_sync()
    regression.refresh_from_db()
    assert (regression.state, regression.outcome) == ("resolved", "stopped")


def test_a_snoozed_silence_reopens(project: Project, time: Time) -> None:
    fleets(project, 2)
    look(time, 240)
    Alert.objects.update(state="snoozed", snoozed_until=clock.now() + timedelta(minutes=5))
    look(time, 240)
    assert Alert.objects.get().state == "snoozed"
    look(time, 120)
    assert Alert.objects.get().state == "open"
