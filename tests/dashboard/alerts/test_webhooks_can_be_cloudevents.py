"""A webhook as a CloudEvent in structured mode: the attributes that the specification requires, the
same payload, the same signature."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
from standardwebhooks import Webhook as Verifier

from dashboard.alerts import channels
from dashboard.alerts.models import Channel, Delivery
from dashboard.alerts.services import alerts_sync, channel_create, channel_test, deliveries_send
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db
FACTS = json.loads((Path(channels.__file__).parent / "webhook.schema.json").read_text())
CONTEXT = {"specversion", "id", "source", "type", "subject", "time", "datacontenttype"}


@pytest.fixture
def hook(project: Project, slack: StandIn) -> Channel:
    return channel_create(
        project=project, kind="cloudevents", name="broker", address=slack.url, actor_name="tests"
    )


def event_of(body: bytes) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(body)
    assert set(event) <= CONTEXT | {"data"}
    assert event["specversion"] == "1.0" and event["datacontenttype"] == "application/json"
    assert all(isinstance(event[name], str) and event[name] for name in CONTEXT & set(event))
    source = urlsplit(event["source"])
    assert source.scheme and source.netloc, "an absolute URI-reference"
    assert datetime.fromisoformat(event["time"]).tzinfo is not None
    jsonschema.validate(event["data"], {**FACTS["$defs"]["facts"], "$defs": FACTS["$defs"]})
    return event


def test_every_message_is_a_cloudevent(
    fleet: Fleet, old: Deployment, new: Deployment, hook: Channel, slack: StandIn, time: Time
) -> None:
    channel_test(channel=hook, actor_name="test")
    for kind in ("roll_back", "healthy"):
        time.go(60)
        fleet.say(new, kind, baseline=old)
        alerts_sync()
        deliveries_send()
    events = [event_of(body) for body in slack.bodies]
    assert [event["type"] for event in events] == [
        f"compilewatch.{name}" for name in ("channel.test", "alert.opened", "alert.resolved")
    ]
    assert [event.get("subject") for event in events] == [None, "A-1", "A-1"]
    assert [event["id"] for event in events] == list(
        Delivery.objects.order_by("pk").values_list("message_id", flat=True)
    )
    headers = {name.lower(): value for name, value in slack.headers[0].items()}
    assert headers["content-type"] == "application/cloudevents+json"


def test_it_is_signed_like_every_webhook(hook: Channel, slack: StandIn) -> None:
    assert hook.secret
    channel_test(channel=hook, actor_name="test")
    deliveries_send()
    Verifier(hook.secret).verify(
        slack.bodies[0], {name.lower(): value for name, value in slack.headers[0].items()}
    )
