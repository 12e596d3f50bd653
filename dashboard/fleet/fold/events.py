"""What happened in a report: compilations and findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilewatch.wire.messages import FINDING_KINDS, MAX_COMPILES, MAX_REASON, PATTERNS, Compile, Finding, Report
from compilewatch.wire.numerics import parity_of

from dashboard.fleet.fold.column_text import label
from dashboard.fleet.fold.decode import MAX_INT32, Sender
from dashboard.fleet.fold.facts import CompileFact, Facts, FindingFact, Seen, values_kept
from dashboard.fleet.fold.fingerprint import fingerprint
from dashboard.fleet.fold.keys import FindingKey, instance_of
from dashboard.fleet.fold.process import MAX_BYTES, MAX_FINDING_COUNT, compile_seconds, kind_of, ooms_of, seconds_of
from dashboard.fleet.fold.report_window import Window

ANOTHER = "another result than eager"


def compiles_fold(facts: Facts, sender: Sender, report: Report, window: Window) -> None:
    """One row per compilation, up to the wire's limit; the counts of the process hold all of them."""
    key, day = instance_of(sender.source), window.minute // 1440
    for number, compile_ in enumerate(report.compiles[:MAX_COMPILES]):
        at = window.moment(compile_.at)
        facts.compiles[key, report.seq[0], number] = CompileFact(sender.source, day, report.seq[0], number, at, _compile_columns(compile_))


def _compile_columns(compile_: Compile) -> dict[str, Any]:
    took = {phase: compile_seconds(value) for phase, value in compile_.seconds.items()}
    total = took.pop("total", None)
    return {
        "compile_id": label(compile_.id, 64),
        "frame": label(compile_.frame, 512),
        "file": label(compile_.file, 512),
        "line": min(max(compile_.line, 0), MAX_INT32),
        "kind": label(kind_of(compile_), 16),
        "reason": label(compile_.reason, MAX_REASON),
        "outcome": label(compile_.outcome, 16),
        "total": total,
        "phases": {label(phase, 32): seconds for phase, seconds in took.items() if seconds is not None},
        "cache_fx": label(compile_.cache.get("fx", ""), 8),
        "cache_aot": label(compile_.cache.get("aot", ""), 8),
        "cache_autotune": label(compile_.cache.get("autotune", ""), 8),
        "cache_bundle": label(compile_.cache.get("bundle", ""), 8),
        "cache_mega": label(compile_.cache.get("mega", ""), 8),
        "cache_key": label(compile_.key, 32),
        "miss": label(compile_.miss, 200),
        "saved": compile_seconds(compile_.saved),
        "new_peak": None if compile_.new_peak is None else min(max(compile_.new_peak, 0), MAX_BYTES),
        "in_request": compile_.in_request,
        "reason_kind": label(compile_.reason_kind, 16),
        "backend": label(compile_.backend, 64),
        "mode": label(compile_.mode, 64),
        "dynamic": label(compile_.dynamic, 16),
        "fullgraph": compile_.fullgraph,
        "entries": compile_.entries,
        "entry_limit": compile_.limit,
    }


def findings_fold(facts: Facts, sender: Sender, report: Report, window: Window) -> None:
    """Findings of the report, and those that certain facts amount to."""
    version = sender.source.version
    for kind, text, where, seen, values in _findings(report, window):
        key = FindingKey(version.project, version.model, kind, fingerprint(text, where))
        seen.count = min(max(seen.count, 0), MAX_FINDING_COUNT)
        fact = FindingFact((seen.first, text, where), {sender.source: seen}, *values)
        if key in facts.findings:
            facts.findings[key].add(fact)
        else:
            facts.findings[key] = fact


Values = tuple[frozenset[str], int, str]
"""The values that a finding names, how many there are, and how they vary."""
NOTHING: Values = (frozenset(), 0, "")


def _values(finding: Finding) -> Values:
    values = values_kept(label(value, 200) for value in finding.values)
    return values, min(max(finding.distinct, 0), MAX_INT32), finding.pattern if finding.pattern in PATTERNS else ""


def _findings(report: Report, window: Window) -> Iterator[tuple[str, str, str, Seen, Values]]:
    for finding in report.findings:
        if finding.kind in FINDING_KINDS:
            seen = Seen(finding.count, window.end, window.end, seconds_of(finding.seconds))
            yield finding.kind, label(finding.text, MAX_REASON), label(finding.where, 512), seen, _values(finding)
    for fact in report.facts:
        data, at = fact.data, window.moment(fact.at)
        where = f"{data['file']}:{data.get('line', '')}" if data.get("file") else ""
        if fact.kind == "latched_eager":
            frame, cause = data.get("frame", ""), data.get("cause", "")
            text = label(f"{frame} runs eager until the process restarts: {cause}", 512)
            yield "latched_eager", text, label(where, 512), Seen(1, at, at), NOTHING
        elif fact.kind == "compiled_nothing" and not any(finding.kind == fact.kind for finding in report.findings):
            text = label(str(data.get("text") or f"{data.get('region', '')}: compilation was requested, nothing was compiled"), MAX_REASON)
            yield "compiled_nothing", text, label(where, 512), Seen(1, at, at), NOTHING
        elif fact.kind == "oom":
            text = label(str(data.get("text") or "out of memory"), MAX_REASON)
            yield "oom", text, label(where, 512), Seen(ooms_of(fact), at, at), NOTHING
        elif fact.kind == "parity" and (parity := parity_of(data)).state == "failed" and parity.kind != "finite":
            # The figures differ between instances; it is the same finding on all of them.
            yield "parity", label(f"{parity.name}: {parity.why or ANOTHER}", MAX_REASON), label(where, 512), Seen(1, at, at), NOTHING
