"""CloudEvents webhook (1.0, structured mode), for brokers such as Knative; `data` follows
webhook.schema.json."""

from __future__ import annotations

import json

from dashboard.alerts.channels.base import EncodedMessage, Message
from dashboard.alerts.channels.webhook import Webhook, event_type


class CloudEvents(Webhook):
    """Signed like every webhook. `id` is the message ID and the same for every attempt, so
    receivers can drop duplicates by source and ID."""

    kind = "cloudevents"
    label = "Webhook, CloudEvents"
    content_type = "application/cloudevents+json"

    def build(self, message: Message) -> EncodedMessage:
        """The context attributes and the payload; `subject` is the alert, if the message is about
        one."""
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
