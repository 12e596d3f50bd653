"""Cold start: the stages an agent reports, or bounds derived from its reports."""

from __future__ import annotations

import json
import math
from typing import Any

from compilewatch.wire.messages import COLD_START, COLD_START_ENDS, OWN_MARKS, Fact, Report

from dashboard.fleet.fold.column_text import clip_label
from dashboard.fleet.fold.decode import ReportSender
from dashboard.fleet.fold.facts import ColdStartFact, ColdStartReport, Facts, value_add
from dashboard.fleet.fold.keys import to_instance_key
from dashboard.fleet.fold.process import MAX_SECONDS
from dashboard.fleet.fold.report_window import Window

MAX_MARKS = 64
MAX_STAGES = 64


def fold_cold_start(facts: Facts, sender: ReportSender, report: Report, window: Window) -> None:
    """Add the cold start of a report to the facts.

    The end of the first window with compiled calls is an upper bound of the first call.
    """
    ready = min(
        (window.moment(fact.at) for fact in report.facts if fact.kind == "ready"), default=None
    )
    marks: dict[str, float] = {}
    for fact in report.facts:
        name = str(fact.data.get("name", ""))
        if fact.kind == "mark" and name not in OWN_MARKS and len(marks) < MAX_MARKS:
            mark, at = clip_label(name, 64), window.moment(fact.at)
            marks[mark] = min(at, marks.get(mark, at))
    told = max(
        (one for one in map(parse_cold_start, report.facts) if one is not None), default=None
    )
    called = any(region.compiled > 0 for region in report.regions)
    if ready is None and not marks and not report.compiles and not called and told is None:
        return
    start = ColdStartFact(
        source=sender.source,
        started=window.moment(sender.identity.started),
        ready=ready,
        first_compile=min(
            (window.moment(compile_.at) for compile_ in report.compiles), default=None
        ),
        first_call=window.end if called else None,
        marks=marks,
        told=told,
    )
    value_add(facts.cold_starts, to_instance_key(sender.source), start)


def parse_cold_start(fact: Fact) -> ColdStartReport | None:
    """Return the cold start as the agent reports it; None for any other or malformed fact."""
    data = fact.data
    if fact.kind != "mark" or data.get("name") != COLD_START:
        return None
    total, until = _parse_seconds(data.get("total")), data.get("until")
    if total is None or until not in COLD_START_ENDS:
        return None
    said = {
        "until": until,
        "stages": _parse_stages(data.get("stages")),
        "phases": {
            name: seconds
            for name, value in _parse_table(data.get("phases"))
            if (seconds := _parse_seconds(value)) is not None
        },
        "unaccounted": _parse_seconds(data.get("unaccounted")),
    }
    return until == COLD_START_ENDS[1], total, json.dumps(said, sort_keys=True)


def _parse_stages(value: Any) -> list[list[Any]]:
    """Return name, start and duration (s) of each stage, in order."""
    found = []
    for name, span in _parse_table(value):
        start, seconds = (
            (_parse_seconds(one) for one in span)
            if isinstance(span, list) and len(span) == 2
            else (None, None)
        )
        if start is not None and seconds is not None:
            found.append([name, start, seconds])
    return sorted(found, key=lambda stage: (stage[1], stage[0]))


def _parse_table(value: Any) -> list[tuple[str, Any]]:
    return (
        [(clip_label(str(name), 64), entry) for name, entry in list(value.items())[:MAX_STAGES]]
        if isinstance(value, dict)
        else []
    )


def _parse_seconds(value: Any) -> float | None:
    """Return the value if it is a plausible number of seconds, else None."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 0 <= value <= MAX_SECONDS
    ):
        return None
    return float(value)
