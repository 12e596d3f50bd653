"""Message text shared by all channels: the title, the notes below the message, and one line per
alert of a digest."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.alerts.channels.base import Message
from dashboard.alerts.models import AlertOutcome, DeliveryKind
from dashboard.alerts.payloads import DigestLine, GroupPayload, MessagePayload
from dashboard.common import clock

MAX_ALERTS_LISTED = 8
"""Maximum number of alerts listed in one message; the page lists all of them."""
_REMINDER_PREFIXES = {
    DeliveryKind.REPEATED.value: "Reminder: ",
    DeliveryKind.ESCALATED.value: "Escalated: ",
}
_VERDICT_LABELS = {"roll_back": "ROLL BACK", "watch": "WATCH"}


def to_single_line(text: str) -> str:
    """One line of printable characters: a user-chosen name cannot create a header or a line, or
    reverse the direction of other text."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def message_title(message: Message) -> str:
    """The verdict, the alert and both versions."""
    facts, alert = message.facts, message.facts["alert"]
    if message.kind == DeliveryKind.DIGEST:
        said = _group_title(facts) or f"{len(facts['alerts'])} alerts"
        return f"{'Simulated: ' if facts['simulated'] else ''}{said}, {facts['project']['name']}"
    if alert is None:
        return f"Test notification from compilewatch, {facts['project']['name']}"
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
    )  # an alert without a version is named after its sentence
    if message.kind == DeliveryKind.RESOLVED:
        return f"{simulated}Resolved: {alert['id']} {names}"
    prefix = _REMINDER_PREFIXES.get(message.kind, "")
    label = _VERDICT_LABELS.get(alert["severity"], alert["severity"])
    return f"{simulated}{prefix}{label} {alert['id']}: {names}"


def message_notes(message: Message) -> list[str]:
    """Short notes: place, time, group, simulation and runbook."""
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
            notes.append(f"resolved {_moment(alert['resolved_at'])} ({_outcome(alert['outcome'])})")
        if facts["covers"]:
            count = len(facts["covers"])
            notes.append(f"replaces {count} undelivered notification{'s' if count > 1 else ''}")
    elif start := _start(facts):
        notes.append(start)
    if group := facts.get("group"):
        notes.append(f"{_lower(group)} ({_format_alert_ids(group['alerts'])})")
    if facts["simulated"]:
        notes.append("simulated data")
    if facts["roll_back_guide"] and message.kind != DeliveryKind.RESOLVED:
        notes.append(f"rollback runbook: {facts['roll_back_guide']}")
    return notes


def digest_line(line: DigestLine) -> str:
    """One alert of a digest on one line."""
    verdict = (
        "resolved"
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
    """The worst open verdict and the group: `ROLL BACK, possible common cause: 3 alerts share
    machine gpu-7`."""
    group, lines = facts.get("group"), facts["alerts"]
    if not group:
        return ""
    going = {line["severity"] for line in lines if line["kind"] != DeliveryKind.RESOLVED}
    worst = next(
        (said for kind, said in _VERDICT_LABELS.items() if kind in going), f"{len(lines)} resolved"
    )
    kinds = {line["kind"] for line in lines}
    return (
        f"{_REMINDER_PREFIXES.get(next(iter(kinds)), '') if len(kinds) == 1 else ''}{worst}, "
        f"{_lower(group)}"
    )


def _start(facts: MessagePayload) -> str:
    """When the condition began. A queued message of an earlier release has no onset."""
    onset = facts.get("onset")
    if onset and onset["earliest"] < onset["latest"]:
        return f"began between {_moment(onset['earliest'])} and {_moment(onset['latest'])}"
    return f"since {_moment(facts['since'])}" if facts["since"] else ""


def _lower(group: GroupPayload) -> str:
    title = group["title"]
    return title[:1].lower() + title[1:] if group["kind"] == "environment" else title


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
