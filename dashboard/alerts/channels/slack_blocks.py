"""Builds the Block Kit of a message within Slack's limits; every text of other people is plain text and harmless.

Slack rejects a message whole when one block is too long, so every text is cut here: the header at Slack's 150 characters, the
others so that all of them together stay below 2,900.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from dashboard.alerts.channels.base import Message
from dashboard.alerts.facts import DigestLine, Facts
from dashboard.alerts.models import AlertOutcome, DeliveryKind

Block = dict[str, Any]

HEADER, SENTENCE, CAUSE, FIELD, NOTE, FALLBACK, BUTTON_URL = 150, 700, 400, 200, 200, 500, 3000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_MENTION = re.compile(r"<([!@#])|@(?=(?:channel|here|everyone))", re.IGNORECASE)
LISTED = 8
_AGAIN = {DeliveryKind.REPEATED.value: "Still open: ", DeliveryKind.ESCALATED.value: "Nobody answered: "}
_VERDICTS = {"roll_back": "ROLL BACK", "watch": "WATCH"}


def message_blocks(message: Message) -> tuple[str, list[Block]]:
    """The fallback text, and the blocks."""
    facts = message.facts
    title = cut(_title(message), HEADER)
    said = cut(facts["news"] or facts["sentence"], SENTENCE)
    blocks: list[Block] = [{"type": "header", "text": plain(title)}, {"type": "section", "text": plain(said)}]
    if message.kind == DeliveryKind.DIGEST:
        blocks += [{"type": "section", "text": plain(cut(digest_line(line), NOTE))} for line in facts["alerts"][:LISTED]]
    elif message.kind == DeliveryKind.RESOLVED:
        blocks.append({"type": "section", "text": plain(cut(f"It said: {facts['sentence']}", SENTENCE))})
    else:
        blocks += _evidence(facts)
    blocks.append({"type": "context", "elements": [plain(cut(line, NOTE)) for line in _notes(message)]})
    if buttons := _buttons(facts):
        blocks.append({"type": "actions", "elements": buttons})
    return escape(cut(f"{title}: {said}", FALLBACK)), blocks


def plain(text: str) -> dict[str, Any]:
    """A text that Slack shows as it is: no links, no mentions, no emoji codes."""
    return {"type": "plain_text", "text": escape(text), "emoji": False}


def cut(text: str, limit: int) -> str:
    """At most so many characters after escaping, on one line, without control characters, and with mentions broken."""
    line = _MENTION.sub(lambda found: found[0] + "\u2060", " ".join(_CONTROL.sub(" ", text).split()))[:limit] or "\u2013"
    if len(escape(line)) <= limit:
        return line
    while len(escape(line)) > limit - 1:
        line = line[: -max(1, (len(escape(line)) - limit) // 5)]
    return line.rstrip() + "\u2026"


def escape(text: str) -> str:
    """Slack's own escaping."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _title(message: Message) -> str:
    facts, alert = message.facts, message.facts["alert"]
    if message.kind == DeliveryKind.DIGEST:
        return f"{'Simulated: ' if facts['simulated'] else ''}{len(facts['alerts'])} alerts, {facts['project']['name']}"
    if alert is None:
        return f"Test of compilewatch, {facts['project']['name']}"
    model, version, baseline = _name(facts["model"]), _name(facts["version"]), _name(facts["baseline"])
    simulated = "Simulated: " if facts["simulated"] else ""
    names = f"{_short(model)} {_short(version)}" + (f" against {_short(baseline)}" if baseline else "")
    if message.kind == DeliveryKind.RESOLVED:
        return f"{simulated}{alert['id']} over: {names}"
    return f"{simulated}{_AGAIN.get(message.kind, '')}{_VERDICTS.get(alert['severity'], alert['severity'])} {alert['id']}: {names}"


def digest_line(line: DigestLine) -> str:
    """One alert among several, on one line."""
    verdict = "over" if line["kind"] == DeliveryKind.RESOLVED else _VERDICTS.get(line["severity"], line["severity"])
    simulated = "simulated, " if line["simulated"] else ""
    return f"{line['id']} {verdict}, {simulated}{_short(line['model'])} {_short(line['version'])} in {line['environment']}: {line['text']}"


def _name(named: Any) -> str:
    return named["name"] if named else ""


def _short(name: str) -> str:
    return name if len(name) <= 36 else name[:35] + "\u2026"


def _evidence(facts: Facts) -> list[Block]:
    fields = [
        plain(cut(f"{line['name']}{', ' + line['region'] if line['region'] else ''}: {line['text']}", FIELD))
        for line in facts["evidence"][:3]
    ]
    blocks: list[Block] = [{"type": "section", "fields": fields}] if fields else []
    if facts["cause"] and facts["cause"] not in facts["sentence"]:
        blocks.append({"type": "section", "text": plain(cut(f"Cause: {facts['cause']}", CAUSE))})
    return blocks


def _notes(message: Message) -> list[str]:
    facts, alert = message.facts, message.facts["alert"]
    if message.kind == DeliveryKind.DIGEST and len(facts["alerts"]) > LISTED:
        return [facts["project"]["name"], f"the {LISTED} worst of {len(facts['alerts'])}"]
    if alert is None:
        return [facts["project"]["name"]]
    where = f"{facts['environment']}, project {facts['project']['name']}"
    notes = [f"{alert['id']} in {where}", f"opened {_moment(alert['opened_at'])}"]
    if message.kind == DeliveryKind.RESOLVED:
        if alert["resolved_at"]:
            notes.append(f"over {_moment(alert['resolved_at'])}: {_outcome(alert['outcome'])}")
        if facts["covers"]:
            count = len(facts["covers"])
            notes.append(f"stands for {count} earlier message{'s' if count > 1 else ''} that could not be delivered")
    elif facts["since"]:
        notes.append(f"since {_moment(facts['since'])}")
    if facts["simulated"]:
        notes.append("simulated data, no real machine is affected")
    if facts["roll_back_guide"] and message.kind != DeliveryKind.RESOLVED:
        notes.append(f"roll back guide: {facts['roll_back_guide']}")
    return notes


def _outcome(value: str) -> str:
    return AlertOutcome(value).label.lower() if value in AlertOutcome.values else value


def _moment(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"


def _buttons(facts: Facts) -> list[Block]:
    links = facts["links"]
    wanted = (
        ("evidence", "See evidence", links["evidence"]),
        ("acknowledge", "Acknowledge", links["alert"]),
        ("guide", "Roll back guide", links["roll_back_guide"]),
        ("alerts", "See the alerts", links["alerts"] if facts.get("alerts") else None),
        ("project", "Open compilewatch", None if links["alert"] or facts.get("alerts") else links["project"]),
    )
    return [
        {"type": "button", "action_id": name, "text": plain(label), "url": url}
        for name, label, url in wanted
        if url and len(url) <= BUTTON_URL and url.startswith(("https://", "http://"))
    ]
