"""The words that channels share: what a message is called, what stands beneath it, and one alert
among several."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.alerts.channels.base import Message
from dashboard.alerts.models import AlertOutcome, DeliveryKind
from dashboard.alerts.payloads import DigestLine, GroupPayload, MessagePayload
from dashboard.common import clock

MAX_ALERTS_LISTED = 8
"""Alerts of one message that a person reads; the page has all of them."""
_REMINDER_PREFIXES = {
    DeliveryKind.REPEATED.value: "Still open: ",
    DeliveryKind.ESCALATED.value: "Not acknowledged: ",
}
_VERDICT_LABELS = {"roll_back": "ROLL BACK", "watch": "WATCH"}


def to_single_line(text: str) -> str:
    """One line of what can be seen: a name that somebody chose makes no header, no line of its own,
    and turns no other text round."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def message_title(message: Message) -> str:
    """The verdict, the alert and both versions."""
    facts, alert = message.facts, message.facts["alert"]
    if message.kind == DeliveryKind.DIGEST:
        said = _group_title(facts) or f"{len(facts['alerts'])} alerts"
        return f"{'Simulated: ' if facts['simulated'] else ''}{said}, {facts['project']['name']}"
    if alert is None:
        return f"Test of compilewatch, {facts['project']['name']}"
    model, version, baseline = (
        _name(facts["model"]),
        _name(facts["version"]),
        _name(facts["baseline"]),
    )
    simulated = "Simulated: " if facts["simulated"] else ""
    names = f"{_short(model)} {_short(version)}" + (
        f" against {_short(baseline)}" if baseline else ""
    )
    names = (
        names if version else facts["sentence"].removesuffix(".")
    )  # an alert about no version is called by what happened
    if message.kind == DeliveryKind.RESOLVED:
        return f"{simulated}{alert['id']} over: {names}"
    prefix = _REMINDER_PREFIXES.get(message.kind, "")
    label = _VERDICT_LABELS.get(alert["severity"], alert["severity"])
    return f"{simulated}{prefix}{label} {alert['id']}: {names}"


def message_notes(message: Message) -> list[str]:
    """Where, since when, and what else there is to know, each in a few words."""
    facts, alert = message.facts, message.facts["alert"]
    if message.kind == DeliveryKind.DIGEST and len(facts["alerts"]) > MAX_ALERTS_LISTED:
        return [
            facts["project"]["name"],
            f"the {MAX_ALERTS_LISTED} worst of {len(facts['alerts'])}",
        ]
    if alert is None:
        return [facts["project"]["name"]]
    where = ", ".join(filter(None, (facts["environment"], f"project {facts['project']['name']}")))
    notes = [f"{alert['id']} in {where}", f"opened {_moment(alert['opened_at'])}"]
    if message.kind == DeliveryKind.RESOLVED:
        if alert["resolved_at"]:
            notes.append(f"over {_moment(alert['resolved_at'])}: {_outcome(alert['outcome'])}")
        if facts["covers"]:
            count = len(facts["covers"])
            notes.append(
                f"stands for {count} earlier message{'s' if count > 1 else ''} that could "
                "not be delivered"
            )
    elif facts["since"]:
        notes.append(f"since {_moment(facts['since'])}")
    if group := facts.get("group"):
        notes.append(f"{_lower(group)} ({_format_alert_ids(group['alerts'])})")
    if facts["simulated"]:
        notes.append("simulated data, no real machine is affected")
    if facts["roll_back_guide"] and message.kind != DeliveryKind.RESOLVED:
        notes.append(f"roll back guide: {facts['roll_back_guide']}")
    return notes


def digest_line(line: DigestLine) -> str:
    """One alert among several, on one line."""
    verdict = (
        "over"
        if line["kind"] == DeliveryKind.RESOLVED
        else _VERDICT_LABELS.get(line["severity"], line["severity"])
    )
    simulated = "simulated, " if line["simulated"] else ""
    where = (
        f"{simulated}{_short(line['model'])} {_short(line['version'])} in {line['environment']}"
        if line["version"]
        else simulated
    )
    return (
        f"{_REMINDER_PREFIXES.get(line['kind'], '')}{line['id']} "
        f"{verdict}{', ' + where.removesuffix(', ') if where else ''}: "
        f"{line['text']}"
    )


def _group_title(facts: MessagePayload) -> str:
    """The worst that goes on, and what they belong to: `ROLL BACK, environment: 3 alerts share
    machine gpu-7`."""
    group, lines = facts.get("group"), facts["alerts"]
    if not group:
        return ""
    going = {line["severity"] for line in lines if line["kind"] != DeliveryKind.RESOLVED}
    worst = next(
        (said for kind, said in _VERDICT_LABELS.items() if kind in going), f"{len(lines)} over"
    )
    kinds = {line["kind"] for line in lines}
    return (
        f"{_REMINDER_PREFIXES.get(next(iter(kinds)), '') if len(kinds) == 1 else ''}{worst}, "
        f"{_lower(group)}"
    )


def _lower(group: GroupPayload) -> str:
    return (
        group["title"].replace("Environment:", "environment:", 1)
        if group["kind"] == "environment"
        else group["title"]
    )


def _format_alert_ids(ids: list[str]) -> str:
    return ", ".join(ids[:MAX_ALERTS_LISTED]) + (
        f" and {len(ids) - MAX_ALERTS_LISTED} more" if len(ids) > MAX_ALERTS_LISTED else ""
    )


def _name(named: Any) -> str:
    return named["name"] if named else ""


def _short(name: str) -> str:
    return name if len(name) <= 36 else name[:35] + "\u2026"


def _outcome(value: str) -> str:
    return AlertOutcome(value).label.lower() if value in AlertOutcome.values else value


def _moment(text: str) -> str:
    return clock.format_timestamp(datetime.fromisoformat(text))
