"""Command receipts: the states of commands as an instance reports them."""

from __future__ import annotations

import json
from typing import Any

from compilewatch.wire.command import MAX_COUNTER, RECEIPTS
from compilewatch.wire.messages import Report

from dashboard.fleet.fold.column_text import clip_label
from dashboard.fleet.fold.facts import Receipt
from dashboard.fleet.fold.report_window import Window

MAX_RECEIPTS = 128
_TEXTS = {"verb": 16, "why": 32, "detail": 200}
_NUMBERS = ("counter", "callables", "refused")


def parse_receipts(report: Report, window: Window) -> set[Receipt]:
    """Return up to MAX_RECEIPTS valid receipts of a report."""
    found: set[Receipt] = set()
    for fact in report.facts:
        state = fact.data.get("state")
        if fact.kind == "command_receipt" and state in RECEIPTS and len(found) < MAX_RECEIPTS:
            command = clip_label(str(fact.data.get("command", "")), 64)
            found.add(
                (
                    window.moment(fact.at),
                    str(state),
                    command,
                    json.dumps(_parse_details(fact.data), sort_keys=True),
                )
            )
    return found


def _parse_details(data: dict[str, Any]) -> dict[str, Any]:
    texts = {name: clip_label(str(data.get(name, "")), most) for name, most in _TEXTS.items()}
    return {**texts, **{name: _clamp_number(data.get(name)) for name in _NUMBERS}}


def _clamp_number(value: Any) -> int:
    return (
        min(max(value, 0), MAX_COUNTER)
        if isinstance(value, int) and not isinstance(value, bool)
        else 0
    )
