"""Channel registry. To add a kind of channel, add a file to this folder that follows base.Channel,
and an entry here.

Example: a channel for Mattermost, which accepts JSON with a text (`mattermost.py`):

    class Mattermost:
        kind, label, pace, seconds = "mattermost", "Mattermost", 0.1, 10.0

        def address_check(self, address: str) -> None:
            target_of(address, settings.OUTBOUND_ALLOW)

        def build(self, message: Message) -> EncodedMessage:
            lines = [message_title(message), message.facts["sentence"], *message_notes(message)]
            return EncodedMessage(message.id, json.dumps({"text": "\\n".join(lines)}).encode())

        def send(self, payload: EncodedMessage, channel: ChannelRow) -> Answer:
            headers = {"Content-Type": "application/json"}
            answer = outbound_post(url=channel.address, body=payload.body, headers=headers)
            if answer.status != 200:
                text, gone = f"Mattermost answered {answer.status}.", answer.status in (404, 410)
                raise DeliveryError(text, disables=gone, answer=answer)
            return answer

Leases, retries, order, merging, *Send test*, rules and pages work without further code. Add the
kind to models.Channel.
"""

from dashboard.alerts.channels.apprise import Apprise, apprise_ready
from dashboard.alerts.channels.base import Channel, DeliveryError, EncodedMessage, Message
from dashboard.alerts.channels.cloudevents import CloudEvents
from dashboard.alerts.channels.email import Email
from dashboard.alerts.channels.slack import Slack
from dashboard.alerts.channels.webhook import Webhook

CHANNELS: dict[str, Channel] = {
    channel.kind: channel for channel in (Slack(), Webhook(), CloudEvents(), Email(), Apprise())
}


def list_channel_kinds() -> list[tuple[str, str]]:
    """Kinds of channels that a form may offer, with their labels."""
    return [
        (kind, channel.label)
        for kind, channel in CHANNELS.items()
        if kind != Apprise.kind or apprise_ready()
    ]


__all__ = [
    "CHANNELS",
    "Channel",
    "DeliveryError",
    "EncodedMessage",
    "Message",
    "list_channel_kinds",
]
