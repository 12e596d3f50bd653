"""The channels there are. A new one is a file beside these that follows base.Channel, and its line here."""

from dashboard.alerts.channels.base import Channel, DeliveryError, Message, Payload
from dashboard.alerts.channels.slack import Slack
from dashboard.alerts.channels.webhook import Webhook

CHANNELS: dict[str, Channel] = {channel.kind: channel for channel in (Slack(), Webhook())}

__all__ = ["CHANNELS", "Channel", "DeliveryError", "Message", "Payload"]
