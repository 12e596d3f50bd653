"""What happened in a report: compilations, the cold start, and findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilewatch.wire.report import FINDING_KINDS, MAX_COMPILES, MAX_REASON, Compile, Report

from dashboard.fleet.fold.decode import MAX_INT32, Sender
from dashboard.fleet.fold.facts import ColdStartFact, CompileFact, Facts, FindingFact, Seen
from dashboard.fleet.fold.fingerprint import fingerprint
from dashboard.fleet.fold.keys import FindingKey, instance_of
from dashboard.fleet.fold.process import MAX_BYTES, MAX_FINDING_COUNT, seconds_of
from dashboard.fleet.fold.text import label
from dashboard.fleet.fold.window import Window

MAX_MARKS = 64


def compiles_fold(facts: Facts, sender: Sender, report: Report, window: Window) -> None:
    """One row per compilation, up to the wire's limit; the counts of the process hold all of them."""
    key, day = instance_of(sender.source), window.minute // 1440
    for number, compile_ in enumerate(report.compiles[:MAX_COMPILES]):
        at = window.moment(compile_.at)
        facts.compiles[key, report.seq[0], number] = CompileFact(sender.source, day, report.seq[0], number, at, _compile_columns(compile_))


def _compile_columns(compile_: Compile) -> dict[str, Any]:
    phases = {label(phase, 32): seconds_of(value) for phase, value in compile_.seconds.items() if phase != "total"}
    return {
        "compile_id": label(compile_.id, 64),
        "frame": label(compile_.frame, 512),
        "file": label(compile_.file, 512),
        "line": min(max(compile_.line, 0), MAX_INT32),
        "kind": label(compile_.kind, 16),
        "reason": label(compile_.reason, MAX_REASON),
        "outcome": label(compile_.outcome, 16),
        "total": seconds_of(compile_.seconds["total"]) if "total" in compile_.seconds else None,
        "phases": phases,
        "cache_fx": label(compile_.cache.get("fx", ""), 8),
        "cache_aot": label(compile_.cache.get("aot", ""), 8),
        "saved": None if compile_.saved is None else seconds_of(compile_.saved),
        "new_peak": None if compile_.new_peak is None else min(max(compile_.new_peak, 0), MAX_BYTES),
        "in_request": compile_.in_request,
    }


def start_fold(facts: Facts, sender: Sender, report: Report, window: Window) -> None:
    """What this report says of the cold start; the first window with compiled calls bounds the first call from above."""
    ready = min((window.moment(fact.at) for fact in report.facts if fact.kind == "ready"), default=None)
    marks: dict[str, float] = {}
    for fact in report.facts:
        if fact.kind == "mark" and len(marks) < MAX_MARKS:
            mark, at = label(str(fact.data.get("name", "")), 64), window.moment(fact.at)
            marks[mark] = min(at, marks.get(mark, at))
    called = any(region.compiled > 0 for region in report.regions)
    if ready is None and not marks and not report.compiles and not called:
        return
    facts.cold_starts[instance_of(sender.source)] = ColdStartFact(
        source=sender.source,
        started=window.moment(sender.identity.started),
        ready=ready,
        first_compile=min((window.moment(compile_.at) for compile_ in report.compiles), default=None),
        first_call=window.end if called else None,
        marks=marks,
    )


def findings_fold(facts: Facts, sender: Sender, report: Report, window: Window) -> None:
    """Findings of the report, and those that certain facts amount to."""
    version = sender.source.version
    for kind, text, where, count, at in _findings(report, window):
        key = FindingKey(version.project, version.model, kind, fingerprint(text, where))
        fact = FindingFact((at, text, where), {sender.source: Seen(min(max(count, 0), MAX_FINDING_COUNT), at, at)})
        if key in facts.findings:
            facts.findings[key].add(fact)
        else:
            facts.findings[key] = fact


def _findings(report: Report, window: Window) -> Iterator[tuple[str, str, str, int, float]]:
    for finding in report.findings:
        if finding.kind in FINDING_KINDS:
            yield finding.kind, label(finding.text, MAX_REASON), label(finding.where, 512), finding.count, window.end
    for fact in report.facts:
        data = fact.data
        where = f"{data['file']}:{data.get('line', '')}" if data.get("file") else ""
        if fact.kind == "latched_eager":
            frame, cause = data.get("frame", ""), data.get("cause", "")
            yield (
                "latched_eager",
                label(f"{frame} runs eager until the process restarts: {cause}", 512),
                label(where, 512),
                1,
                window.moment(fact.at),
            )
        elif fact.kind == "oom":
            yield "oom", label(str(data.get("text") or "out of memory"), MAX_REASON), label(where, 512), 1, window.moment(fact.at)
