"""Block Kit messages within Slack's limits; all text from users is harmless plain text.

Slack rejects a message if any block is too long. For this reason every text is truncated here: the
header at Slack's limit of 150 characters, and the others so that together they stay below 2,900."""

from __future__ import annotations

import re
from typing import Any

from dashboard.alerts.channels.base import Message
from dashboard.alerts.channels.message_text import (
    MAX_ALERTS_LISTED,
    digest_line,
    message_notes,
    message_title,
    to_single_line,
)
from dashboard.alerts.models import DeliveryKind
from dashboard.alerts.payloads import DigestLine, MessagePayload

Block = dict[str, Any]

(
    HEADER_LIMIT,
    SENTENCE_LIMIT,
    CAUSE_LIMIT,
    FIELD_LIMIT,
    NOTE_LIMIT,
    FALLBACK_LIMIT,
    BUTTON_URL_LIMIT,
) = 150, 700, 400, 200, 200, 500, 3000
_MENTION = re.compile(r"<([!@#])|@(?=(?:channel|here|everyone))", re.IGNORECASE)


def message_blocks(message: Message) -> tuple[str, list[Block]]:
    """The fallback text, and the blocks."""
    facts = message.facts
    title = truncate(message_title(message), HEADER_LIMIT)
    said = truncate(facts["news"] or facts["sentence"], SENTENCE_LIMIT)
    blocks: list[Block] = [
        {"type": "header", "text": build_plain_text(title)},
        {"type": "section", "text": build_plain_text(said)},
    ]
    if message.kind == DeliveryKind.DIGEST:
        blocks += [_digest_block(line) for line in facts["alerts"][:MAX_ALERTS_LISTED]]
    elif message.kind == DeliveryKind.RESOLVED:
        blocks.append(
            {
                "type": "section",
                "text": build_plain_text(
                    truncate(f"Original alert: {facts['sentence']}", SENTENCE_LIMIT)
                ),
            }
        )
    else:
        blocks += _evidence(facts)
    blocks.append(
        {
            "type": "context",
            "elements": [
                build_plain_text(truncate(line, NOTE_LIMIT)) for line in message_notes(message)
            ],
        }
    )
    if buttons := _buttons(facts):
        blocks.append({"type": "actions", "elements": buttons})
    return escape(truncate(f"{title}: {said}", FALLBACK_LIMIT)), blocks


def build_plain_text(text: str) -> dict[str, Any]:
    """A text that Slack shows unchanged: no links, no mentions, no emoji codes."""
    return {"type": "plain_text", "text": escape(text), "emoji": False}


def truncate(text: str, limit: int) -> str:
    """Truncates to `limit` characters after escaping, on one line, without control characters, and
    with mentions broken."""
    line = _MENTION.sub(lambda found: found[0] + "\u2060", to_single_line(text))[:limit] or "\u2013"
    if len(escape(line)) <= limit:
        return line
    while len(escape(line)) > limit - 1:
        line = line[: -max(1, (len(escape(line)) - limit) // 5)]
    return line.rstrip() + "\u2026"


def escape(text: str) -> str:
    """Slack's own escaping."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _evidence(facts: MessagePayload) -> list[Block]:
    fields = [
        build_plain_text(
            truncate(
                f"{line['name']}{', ' + line['region'] if line['region'] else ''}: {line['text']}",
                FIELD_LIMIT,
            )
        )
        for line in facts["evidence"][:3]
    ]
    blocks: list[Block] = [{"type": "section", "fields": fields}] if fields else []
    if facts["cause"] and facts["cause"] not in facts["sentence"]:
        blocks.append(
            {
                "type": "section",
                "text": build_plain_text(truncate(f"Cause: {facts['cause']}", CAUSE_LIMIT)),
            }
        )
    return blocks


def _digest_block(line: DigestLine) -> Block:
    """One alert of a digest, with a button to its page."""
    block: Block = {
        "type": "section",
        "text": build_plain_text(truncate(digest_line(line), NOTE_LIMIT)),
    }
    url = line["link"] or ""
    return {**block, "accessory": _button("alert", line["id"], url)} if _is_linkable(url) else block


def _button(name: str, label: str, url: str) -> dict[str, Any]:
    return {"type": "button", "action_id": name, "text": build_plain_text(label), "url": url}


def _is_linkable(url: str) -> bool:
    return len(url) <= BUTTON_URL_LIMIT and url.startswith(("https://", "http://"))


def _buttons(facts: MessagePayload) -> list[Block]:
    links = facts["links"]
    wanted = (
        ("evidence", "View evidence", links["evidence"]),
        ("acknowledge", "Acknowledge", links["alert"]),
        ("guide", "Rollback runbook", links["roll_back_guide"]),
        ("alerts", "View alerts", links["alerts"] if facts.get("alerts") else None),
        (
            "project",
            "Open compilewatch",
            None if links["alert"] or facts.get("alerts") else links["project"],
        ),
    )
    return [_button(name, label, url) for name, label, url in wanted if url and _is_linkable(url)]
