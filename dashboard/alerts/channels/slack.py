"""Slack incoming webhooks: the sentence, the strongest evidence and links, as Block Kit."""

from __future__ import annotations

import json

from django.conf import settings

from dashboard.alerts.channels.base import DeliveryError, EncodedMessage, Message
from dashboard.alerts.channels.slack_blocks import message_blocks
from dashboard.alerts.models import Channel
from dashboard.common.outbound.client import OutboundLimits, OutboundResponse, outbound_post
from dashboard.common.outbound.url import parse_target

# Error codes of Slack: the first set means that the webhook no longer works, the second that this
# message is invalid.
DISABLING_ERRORS = {
    "action_prohibited",
    "channel_is_archived",
    "channel_not_found",
    "invalid_token",
    "no_active_hooks",
    "no_service",
    "no_service_id",
    "no_team",
    "posting_to_general_channel_denied",
    "team_disabled",
    "user_not_found",
}
MESSAGE_ERRORS = {
    "invalid_blocks",
    "invalid_blocks_format",
    "invalid_payload",
    "no_text",
    "too_many_attachments",
}


class Slack:
    """One incoming webhook."""

    kind = "slack"
    label = "Slack"
    pace = 1.0
    seconds = OutboundLimits.total

    def address_check(self, address: str) -> None:
        """Accepts the URL of an incoming webhook, or a URL that the server's operator allows."""
        target = parse_target(address, settings.OUTBOUND_ALLOW)
        if not target.allowed and target.host not in ("hooks.slack.com", "hooks.slack-gov.com"):
            raise ValueError(
                "The address of a Slack channel must start with https://hooks.slack.com/."
            )

    def build(self, message: Message) -> EncodedMessage:
        """Blocks, and the fallback text for notifications and screen readers."""
        text, blocks = message_blocks(message)
        content = {"text": text, "blocks": blocks, "unfurl_links": False, "unfurl_media": False}
        return EncodedMessage(message.id, json.dumps(content, separators=(",", ":")).encode())

    def send(self, payload: EncodedMessage, channel: Channel) -> OutboundResponse:
        """Slack answers 200 `ok`, or an error code in the body."""
        headers = {"Content-Type": "application/json; charset=utf-8"}
        answer = outbound_post(url=channel.address, body=payload.body, headers=headers)
        if 200 <= answer.status < 300:
            return answer
        word = answer.text.strip()
        if answer.status in (404, 410) or word in DISABLING_ERRORS:
            raise DeliveryError(
                f"Slack answered {answer.status} {word}: this webhook no longer accepts messages.",
                disables=True,
                answer=answer,
            )
        raise DeliveryError(
            f"Slack answered {answer.status} {word[:80]}".rstrip() + ".",
            permanent=word in MESSAGE_ERRORS,
            answer=answer,
        )
