"""Generic webhooks: a documented body, a constant ID, and signatures that the reference library
accepts during a rotation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from dashboard.accounts.models import AuditEntry, User
from dashboard.alerts import channels
from dashboard.alerts.models import Channel, Delivery
from dashboard.alerts.services import (
    alerts_sync,
    channel_create,
    channel_rotate_secret,
    channel_test,
    deliveries_send,
)
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db
SCHEMA = json.loads((Path(channels.__file__).parent / "webhook.schema.json").read_text())


@pytest.fixture
def hook(project: Project, slack: StandIn) -> Channel:
    return channel_create(
        project=project, kind="webhook", name="ci", address=slack.url, actor_name="tests"
    )


def checked(body: bytes) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(body)
    jsonschema.validate(message, SCHEMA, format_checker=jsonschema.FormatChecker())
    return message


def test_the_body_follows_the_schema_for_every_kind_of_message(
    fleet: Fleet, old: Deployment, new: Deployment, hook: Channel, slack: StandIn, time: Time
) -> None:
    channel_test(channel=hook, actor_name="test")
    for kind in ("roll_back", "watch", "roll_back", "healthy"):
        time.go(60)
        fleet.say(new, kind, baseline=old)
        alerts_sync()
        deliveries_send()
    messages = [checked(body) for body in slack.bodies]
    assert [message["type"] for message in messages] == [
        "channel.test",
        "alert.opened",
        "alert.changed",
        "alert.resolved",
    ]
    data = messages[1]["data"]
    assert (data["model"]["name"], data["version"]["name"], data["baseline"]["name"]) == (
        "ranker",
        "2026.11.3",
        "2026.11.2",
    )
    assert (data["alert"]["id"], data["alert"]["severity"], data["simulated"]) == (
        "A-1",
        "roll_back",
        False,
    )
    assert data["evidence"][0]["change"] == 0.31
    assert messages[3]["data"]["alert"]["outcome"] == "recovered"


def test_every_key_of_a_message_is_in_the_schema(
    fleet: Fleet, new: Deployment, hook: Channel, slack: StandIn
) -> None:
    fleet.say(new, "roll_back")
    alerts_sync()
    deliveries_send()
    data, definitions = checked(slack.bodies[0])["data"], SCHEMA["$defs"]
    assert (
        set(data)
        == set(definitions["facts"]["properties"])
        == set(definitions["facts"]["required"])
    )
    assert set(data["alert"]) == set(definitions["alert"]["properties"])
    assert set(data["evidence"][0]) == set(definitions["evidence"]["properties"])


def test_the_reference_library_accepts_both_secrets_while_they_rotate(
    hook: Channel, user: User, slack: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The library refuses a message with an old timestamp.
    monkeypatch.undo()
    old_secret = hook.secret
    new_secret = channel_rotate_secret(channel=hook, user=user)
    channel_test(channel=hook, actor_name="test")
    deliveries_send()
    body, headers = slack.bodies[0], slack.headers[0]
    for secret in (old_secret, new_secret):
        assert Verifier(secret).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Verifier("whsec_" + "A" * 43 + "=").verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(new_secret).verify(body + b" ", headers)
    third = channel_rotate_secret(channel=hook, user=user)
    channel_test(channel=hook, actor_name="test")
    deliveries_send()
    with pytest.raises(WebhookVerificationError):
        Verifier(old_secret).verify(slack.bodies[1], slack.headers[1])
    assert Verifier(third).verify(slack.bodies[1], slack.headers[1])
    assert secret_free(user)


def secret_free(user: User) -> bool:
    return "whsec_" not in str(list(AuditEntry.objects.values_list("before", "after", "subject")))


def test_the_id_is_constant_and_the_timestamp_changes(
    hook: Channel, slack: StandIn, time: Time
) -> None:
    slack.answers = [(500, "", {})]
    channel_test(channel=hook, actor_name="test")
    deliveries_send()
    time.go(10)
    deliveries_send()
    first, second = slack.headers
    assert first["webhook-id"] == second["webhook-id"]
    assert (
        int(second["webhook-timestamp"])
        == int(clock.unix())
        == int(first["webhook-timestamp"]) + 10
    )
    assert slack.bodies[0] == slack.bodies[1]


def test_gone_disables_the_webhook(hook: Channel, slack: StandIn) -> None:
    slack.always = (410, "gone", {})
    channel_test(channel=hook, actor_name="test")
    deliveries_send()
    hook.refresh_from_db()
    assert (hook.enabled, "410" in hook.disabled_reason) == (False, True)


def test_only_webhooks_have_secrets(channel: Channel, user: User) -> None:
    assert channel.secret == ""
    with pytest.raises(ValueError, match="Only webhooks"):
        channel_rotate_secret(channel=channel, user=user)


def test_a_receiver_that_hangs_up_after_it_has_read_gets_the_same_message_again(
    fleet: Fleet, new: Deployment, hook: Channel, slack: StandIn, time: Time
) -> None:
    slack.answers = [(0, "", {})]
    fleet.say(new, "roll_back")
    alerts_sync()
    assert deliveries_send() == 0
    assert "The connection was closed early" in Delivery.objects.get().last_answer
    time.go(10)
    assert deliveries_send() == 1
    assert len({headers["webhook-id"] for headers in slack.headers}) == 1
    assert [message["data"]["alert"]["id"] for message in slack.messages] == ["A-1", "A-1"]
