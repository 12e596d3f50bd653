"""The same webhook as a CloudEvent (1.0, structured mode), for brokers such as Knative; `data` is
as in webhook.schema.json."""

from __future__ import annotations

import json

from dashboard.alerts.channels.base import EncodedMessage, Message
from dashboard.alerts.channels.webhook import Webhook, event_type


class CloudEvents(Webhook):
    """Signed as every webhook; `id` is the message's and stays over every try, so a receiver drops
    a double by source and id."""

    kind = "cloudevents"
    label = "Webhook, CloudEvents"
    content_type = "application/cloudevents+json"

    def build(self, message: Message) -> EncodedMessage:
        """The context attributes around the facts; `subject` is the alert, where the message is
        about one."""
        facts, alert = message.facts, message.facts["alert"]
        event = {
            "specversion": "1.0",
            "id": message.id,
            "source": facts["links"]["project"],
            "type": f"compilewatch.{event_type(message)}",
            "time": message.at.isoformat(),
            "datacontenttype": "application/json",
            **({"subject": alert["id"]} if alert else {}),
            "data": facts,
        }
        return EncodedMessage(
            message.id, json.dumps(event, separators=(",", ":"), allow_nan=False).encode()
        )
