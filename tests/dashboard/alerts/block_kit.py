"""Slack's documented limits for messages of incoming webhooks, checked independently of the product
and with slack_sdk's own models."""

from __future__ import annotations

from typing import Any

from slack_sdk.models.blocks import Block

HARMFUL = ("<!", "<@", "<#", "<http", "@channel", "@here", "@everyone")


def message_check(message: dict[str, Any]) -> None:
    """Fails if Slack would reject the message or interpret a part of it as markup."""
    assert set(message) <= {"text", "blocks", "unfurl_links", "unfurl_media"}
    assert isinstance(message["text"], str)
    assert 0 < len(message["text"]) <= 2900
    assert 0 < len(message["blocks"]) <= 50
    for block in message["blocks"]:
        block_check(block)
        parsed = Block.parse(block)
        assert parsed is not None
        parsed.validate_json()
    texts = texts_of(message["blocks"])
    assert sum(map(len, texts)) <= 2900
    for text in [message["text"], *texts]:
        assert not any(harm in text.lower() for harm in HARMFUL), text


def block_check(block: dict[str, Any]) -> None:
    kind = block["type"]
    if kind == "header":
        text_check(block["text"], 150)
    elif kind == "section":
        assert ("text" in block) != ("fields" in block)
        if "text" in block:
            text_check(block["text"], 3000)
        else:
            assert 1 <= len(block["fields"]) <= 10
            for field in block["fields"]:
                text_check(field, 2000)
        if "accessory" in block:
            button_check(block["accessory"])
    elif kind == "context":
        assert 1 <= len(block["elements"]) <= 10
        for element in block["elements"]:
            text_check(element, 3000)
    elif kind == "actions":
        assert 1 <= len(block["elements"]) <= 25
        assert len({button["action_id"] for button in block["elements"]}) == len(block["elements"])
        for button in block["elements"]:
            button_check(button)
    else:
        raise AssertionError(f"an unknown block: {kind}")


def button_check(button: dict[str, Any]) -> None:
    assert set(button) == {"type", "action_id", "text", "url"}
    assert button["type"] == "button"
    text_check(button["text"], 75)
    assert button["url"].startswith(("http://", "https://"))
    assert len(button["url"]) <= 3000


def text_check(text: dict[str, Any], limit: int) -> None:
    assert text["type"] == "plain_text"
    assert text["emoji"] is False
    assert 1 <= len(text["text"]) <= limit
    assert text["text"].isprintable() or "\u2060" in text["text"] or "\u00a0" in text["text"]


def texts_of(blocks: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for block in blocks:
        for part in [block.get("text"), *block.get("fields", []), *block.get("elements", [])]:
            if part:
                found.append(
                    part["text"]["text"] if isinstance(part["text"], dict) else part["text"]
                )
    return found
