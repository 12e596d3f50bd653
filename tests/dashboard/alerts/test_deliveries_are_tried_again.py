"""A message that was not accepted is retried on a schedule and in order, until it is delivered or
has visibly failed."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from dashboard.accounts.models import AuditEntry, User
from dashboard.alerts.models import AlertEvent, Channel, Delivery, DeliveryAttempt
from dashboard.alerts.selectors import list_dead_deliveries
from dashboard.alerts.services import (
    alerts_sync,
    channel_create,
    channel_disable,
    channel_enable,
    channel_test,
    deliveries_send,
    redeliver_message,
)
from dashboard.alerts.services.deliver import RETRY_DELAYS_S, retry_delay
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.slack_server import StandIn, stand_in

pytestmark = pytest.mark.django_db


def wait_of(delivery: Delivery) -> float:
    delivery.refresh_from_db()
    return (delivery.next_attempt_at - clock.now()).total_seconds()


def test_a_message_fails_after_ten_attempts_over_four_days(
    channel: Channel, slack: StandIn, time: Time
) -> None:
    slack.always = (500, "oops", {})
    delivery = channel_test(channel=channel, actor_name="test")
    waits = []
    for _ in range(9):
        deliveries_send()
        waits.append(wait_of(delivery))
        assert (delivery.state, delivery.last_status) == ("waiting", 500)
        time.go(waits[-1])
    deliveries_send()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, len(slack.bodies)) == ("dead", 10, 10)
    assert all(
        0.8 * planned <= wait <= 1.2 * planned
        for wait, planned in zip(waits, RETRY_DELAYS_S[1:], strict=True)
    )
    assert list(list_dead_deliveries(project=channel.project)) == [delivery]
    time.go(10 * 86400)
    assert (deliveries_send(), len(slack.bodies)) == (0, 10)


def test_nothing_is_sent_before_its_time(channel: Channel, slack: StandIn, time: Time) -> None:
    slack.answers = [(500, "oops", {})]
    delivery = channel_test(channel=channel, actor_name="test")
    deliveries_send()
    time.go(wait_of(delivery) - 0.1)
    assert (deliveries_send(), len(slack.bodies)) == (0, 1)
    time.go(0.2)
    assert (deliveries_send(), len(slack.bodies)) == (1, 2)


def test_the_retry_delays_of_a_storm_are_spread() -> None:
    waits = {retry_delay(message_id=f"msg_{number}", attempts=3) for number in range(200)}
    assert len(waits) > 190
    assert min(waits) >= 1440
    assert max(waits) <= 2160
    assert max(waits) - min(waits) > 500


@pytest.mark.parametrize(
    ("header", "least"),
    [("120", 120), ("Sat, 01 Jan 2000 00:00:00 GMT", 4), ("soon", 4), ("999999999999", 86400)],
)
def test_too_many_requests_waits_for_the_retry_after_time(
    header: str, least: float, channel: Channel, slack: StandIn, time: Time
) -> None:
    slack.answers = [(429, "rate_limited", {"Retry-After": header})]
    first, second = (
        channel_test(channel=channel, actor_name="test"),
        channel_test(channel=channel, actor_name="test"),
    )
    deliveries_send()
    assert least <= wait_of(first) <= max(least, 6)
    time.go(least - 1)
    assert (deliveries_send(), len(slack.bodies)) == (0, 1)
    time.go(7)
    deliveries_send()
    time.go(1)
    deliveries_send()
    assert [row.state for row in Delivery.objects.filter(pk__in=(first.pk, second.pk))] == [
        "delivered",
        "delivered",
    ]


def test_slack_gets_one_message_a_second(channel: Channel, slack: StandIn, time: Time) -> None:
    for _ in range(3):
        channel_test(channel=channel, actor_name="test")
    sent = []
    for _ in range(6):
        sent.append(deliveries_send())
        time.go(0.5)
    assert sent == [1, 0, 1, 0, 1, 0]


def test_a_failed_test_message_blocks_no_alert(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    test = channel_test(channel=channel, actor_name="test")
    slack.answers = [(500, "oops", {})] * 2
    for _ in range(2):
        deliveries_send()
        time.go(10)
    fleet.say(new, "roll_back")
    alerts_sync()
    deliveries_send()
    assert dict(Delivery.objects.values_list("kind", "state")) == {
        "test": "waiting",
        "opened": "delivered",
    }
    assert wait_of(test) > 60


def test_a_channel_keeps_its_order_and_blocks_no_other(
    project: Project, channel: Channel, slack: StandIn, time: Time, settings: Settings
) -> None:
    first, second = (
        channel_test(channel=channel, actor_name="test"),
        channel_test(channel=channel, actor_name="test"),
    )
    slack.answers = [(500, "oops", {})]
    with stand_in() as receiver:
        settings.OUTBOUND_ALLOW = (*settings.OUTBOUND_ALLOW, f"127.0.0.1:{receiver.port}")
        hook = channel_create(
            project=project, kind="webhook", name="ci", address=receiver.url, actor_name="tests"
        )
        other = channel_test(channel=hook, actor_name="test")
        deliveries_send()
        time.go(2)
        deliveries_send()
    states = dict(Delivery.objects.values_list("pk", "state"))
    assert states == {first.pk: "waiting", second.pk: "waiting", other.pk: "delivered"}
    time.go(10)
    for _ in range(2):
        deliveries_send()
        time.go(1)
    done = (
        Delivery.objects.filter(channel=channel).order_by("delivered_at").values_list("pk", "state")
    )
    assert list(done) == [(first.pk, "delivered"), (second.pk, "delivered")]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (410, "channel_is_archived"),
        (404, "no_service"),
        (404, "not found"),
        (403, "invalid_token"),
        (403, "action_prohibited"),
        (410, ""),
    ],
)
def test_an_address_that_is_gone_disables_the_channel_with_the_reason(
    status: int, word: str, fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn
) -> None:
    slack.always = (status, word, {})
    fleet.say(new, "roll_back")
    alerts_sync()
    waiting = channel_test(channel=channel, actor_name="test")
    deliveries_send()
    channel.refresh_from_db()
    assert not channel.enabled
    assert f"Slack answered {status} {word}" in channel.disabled_reason
    waiting.refresh_from_db()
    assert (waiting.state, waiting.attempts) == ("dead", 0)
    assert "the channel is disabled" in waiting.last_answer
    assert AlertEvent.objects.filter(kind="failed").count() == 1
    assert len(slack.bodies) == 1


def test_a_receiver_that_is_replaced_may_answer_404_for_half_an_hour(
    project: Project, slack: StandIn, time: Time
) -> None:
    hook = channel_create(
        project=project, kind="webhook", name="ci", address=slack.url, actor_name="tests"
    )
    slack.always = (404, "no backend", {})
    delivery = channel_test(channel=hook, actor_name="test")
    begun = clock.unix()
    for _ in range(3):
        deliveries_send()
        hook.refresh_from_db()
        assert hook.enabled
        time.go(wait_of(delivery))
    assert clock.unix() - begun >= 0.8 * (5 + 300 + 1800)
    deliveries_send()
    hook.refresh_from_db()
    delivery.refresh_from_db()
    assert (hook.enabled, hook.disabled_reason, delivery.state) == (
        False,
        "The receiver answered 404. no backend",
        "dead",
    )


def test_a_message_that_slack_cannot_read_fails_and_the_next_is_sent(
    channel: Channel, slack: StandIn, time: Time
) -> None:
    slack.answers = [(400, "invalid_blocks", {})]
    channel_test(channel=channel, actor_name="test")
    channel_test(channel=channel, actor_name="test")
    deliveries_send()
    time.go(1)
    deliveries_send()
    assert list(Delivery.objects.order_by("pk").values_list("state", flat=True)) == [
        "dead",
        "delivered",
    ]
    channel.refresh_from_db()
    assert channel.enabled


def test_a_failed_message_is_redelivered_with_its_id(
    project: Project, user: User, slack: StandIn, time: Time
) -> None:
    hook = channel_create(project=project, kind="webhook", name="ci", address=slack.url, user=user)
    slack.answers = [(410, "gone", {})]
    delivery = channel_test(channel=hook, actor_name="test")
    deliveries_send()
    with pytest.raises(ValueError, match="The channel ci is disabled"):
        redeliver_message(delivery=delivery, user=user)
    hook.refresh_from_db()
    channel_enable(channel=hook, user=user)
    redeliver_message(delivery=delivery, user=user)
    assert deliveries_send() == 1
    assert slack.headers[0]["webhook-id"] == slack.headers[1]["webhook-id"] == delivery.message_id
    with pytest.raises(ValueError, match="Only a failed notification"):
        redeliver_message(delivery=delivery, user=user)
    actions = ["channel.create", "channel.enable", "delivery.replay"]
    assert (
        list(
            AuditEntry.objects.filter(action__in=actions)
            .order_by("pk")
            .values_list("action", flat=True)
        )
        == actions
    )


def test_every_attempt_is_kept_truncated_and_without_secrets(
    channel: Channel, slack: StandIn, time: Time
) -> None:
    slack.answers = [
        (500, f"no such hook {slack.url} /services/T012/B034/wJalrXUtnFEMI " + "x" * 5000, {}),
        (302, "", {"Location": "/"}),
    ]
    delivery = channel_test(channel=channel, actor_name="test")
    for _ in range(3):
        deliveries_send()
        time.go(400)
    tries = list(DeliveryAttempt.objects.filter(delivery=delivery).order_by("pk"))
    assert [entry.status for entry in tries] == [500, 302, 200]
    assert all(
        len(entry.answer) <= 500 and "wJalr" not in entry.answer and entry.ended_at
        for entry in tries
    )
    assert "no such hook" in tries[0].answer


def test_a_server_that_is_down_is_a_failed_attempt(
    channel: Channel, slack: StandIn, time: Time
) -> None:
    Channel.objects.filter(pk=channel.pk).update(address="https://10.0.0.1/services/x")
    delivery = channel_test(channel=channel, actor_name="test")
    assert deliveries_send() == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.last_status) == ("waiting", None)
    assert (
        delivery.last_answer == "The address could not be reached, or sending to it is not allowed."
    )


def test_a_manually_disabled_channel_gets_nothing(
    channel: Channel, user: User, fleet: Fleet, new: Deployment, slack: StandIn
) -> None:
    waiting = channel_test(channel=channel, actor_name="test")
    channel_disable(channel=channel, user=user)
    fleet.say(new, "roll_back")
    alerts_sync()
    deliveries_send()
    waiting.refresh_from_db()
    assert (waiting.state, slack.bodies, Delivery.objects.count()) == ("dead", [], 1)


def test_an_internal_error_is_a_failed_attempt(
    channel: Channel, slack: StandIn, time: Time
) -> None:
    delivery = channel_test(channel=channel, actor_name="test")
    Delivery.objects.filter(pk=delivery.pk).update(facts={})
    assert deliveries_send() == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 1)
    assert delivery.last_answer.startswith("Internal error (KeyError)")


def test_the_first_message_of_a_resolved_alert_is_not_redelivered(
    fleet: Fleet, new: Deployment, channel: Channel, user: User, slack: StandIn, time: Time
) -> None:
    fleet.say(new, "roll_back")
    alerts_sync()
    Delivery.objects.update(state="dead")
    fleet.say(new, "healthy")
    alerts_sync()
    opened = Delivery.objects.get(kind="opened")
    with pytest.raises(
        ValueError, match=r"A-1 is resolved \(auto-recovered\): this notification would report"
    ):
        redeliver_message(delivery=opened, user=user)
    opened.refresh_from_db()
    assert opened.state == "dead"
