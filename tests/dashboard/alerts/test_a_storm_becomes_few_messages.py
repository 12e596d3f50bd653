"""A thousand versions that alarm together become a few messages within the limits, and every alert
is in one of them."""

from __future__ import annotations

import pytest

from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery, DeliveryAttempt
from dashboard.alerts.services import (
    alerts_sync,
    channel_create,
    deliveries_send,
    redeliver_message,
)
from dashboard.common import clock
from dashboard.fleet.models import Deployment, ModelVersion
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.alerts.block_kit import message_check
from tests.dashboard.alerts.fleet import Fleet, Time, evidence_row
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db
VERSIONS = 1000


@pytest.fixture
def hook(project: Project, slack: StandIn) -> Channel:
    return channel_create(
        project=project, kind="webhook", name="ci", address=slack.url, actor_name="tests"
    )


def storm(fleet: Fleet, count: int) -> None:
    """Writes ROLL BACK verdicts for this number of versions at the same moment."""
    now, minute = clock.now(), clock.minute_of(clock.unix())
    of = {"project": fleet.project, "model": fleet.model}
    names = (f"v{number}" for number in range(count))
    versions = ModelVersion.objects.bulk_create(
        ModelVersion(name=name, first_seen_at=now, last_seen_at=now, **of) for name in names
    )
    deployments = Deployment.objects.bulk_create(
        Deployment(
            version=version, environment="prod", started_minute=minute, last_minute=minute, **of
        )
        for version in versions
    )
    Verdict.objects.bulk_create(
        Verdict(
            project=fleet.project,
            deployment=deployment,
            kind="roll_back",
            current=True,
            sentence="p50 rose by 31%.",
            evidence={"evidence": [evidence_row()]},
            minute=minute,
            created_at=now,
        )
        for deployment in deployments
    )
    assert alerts_sync() == count


def drain(time: Time) -> None:
    for _ in range(30):
        deliveries_send()
        time.go(2)


def test_a_thousand_alerts_reach_a_webhook_and_slack_in_a_few_messages(
    fleet: Fleet, channel: Channel, hook: Channel, slack: StandIn, time: Time
) -> None:
    storm(fleet, VERSIONS)
    drain(time)
    assert not Delivery.objects.filter(state__in=("waiting", "dead")).exists()
    to_slack = [message for message in slack.messages if "blocks" in message]
    to_hook = [message for message in slack.messages if "data" in message]
    assert (len(to_slack), len(to_hook)) == (5, 5)
    for message in to_slack:
        message_check(message)
    told = [line["id"] for message in to_hook for line in message["data"]["alerts"]]
    assert sorted(told) == sorted(
        f"A-{number}" for number in Alert.objects.values_list("number", flat=True)
    )
    assert len(told) == VERSIONS
    assert max(map(len, slack.bodies)) < 100_000
    assert AlertEvent.objects.filter(kind="delivered").count() == 2 * VERSIONS
    covered = [identity for message in to_hook for identity in message["data"]["covers"]]
    assert set(covered) == set(
        Delivery.objects.filter(channel=hook, state="merged").values_list("message_id", flat=True)
    )


def test_a_few_alerts_remain_separate_messages(
    fleet: Fleet, hook: Channel, slack: StandIn, time: Time
) -> None:
    storm(fleet, 10)
    drain(time)
    assert [message["type"] for message in slack.messages] == ["alert.opened"] * 10


def test_a_failed_digest_is_in_the_timeline_of_each_alert_and_can_be_redelivered(
    fleet: Fleet, hook: Channel, slack: StandIn, time: Time, django_user_model: type
) -> None:
    slack.always = (500, "no", {})
    storm(fleet, 30)
    Delivery.objects.filter(state="waiting").update(attempts=9)
    for _ in range(12):
        deliveries_send()
        time.go(90_000)
    digest = Delivery.objects.get(kind="digest")
    assert (digest.state, DeliveryAttempt.objects.filter(delivery=digest).count()) == ("dead", 10)
    assert AlertEvent.objects.filter(kind="failed").count() == 30
    slack.always = (200, "ok", {})
    person = django_user_model.objects.create_user(username="ada")  # type: ignore[attr-defined]
    redeliver_message(delivery=digest, user=person)
    assert deliveries_send() == 1
    assert len(slack.messages[-1]["data"]["alerts"]) == 30
