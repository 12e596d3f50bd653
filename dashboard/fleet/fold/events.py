"""Event fold: the compilations and findings of a report."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from compilewatch.wire.messages import (
    FINDING_KINDS,
    MAX_COMPILES,
    MAX_REASON,
    PATTERNS,
    Compile,
    Fact,
    Finding,
    Report,
)
from compilewatch.wire.numerics import parity_of

from dashboard.fleet.fold.column_text import clip_label
from dashboard.fleet.fold.decode import MAX_INT32, ReportSender
from dashboard.fleet.fold.facts import CompileFact, Facts, FindingFact, Occurrences, limit_values
from dashboard.fleet.fold.fingerprint import fingerprint
from dashboard.fleet.fold.keys import FindingKey, to_instance_key
from dashboard.fleet.fold.process import (
    MAX_BYTES,
    MAX_FINDING_COUNT,
    clamp_compile_seconds,
    clamp_seconds,
    classify_compile,
    count_ooms,
)
from dashboard.fleet.fold.report_window import Window

PARITY_FAILED_TEXT = "another result than eager"


def compiles_fold(facts: Facts, sender: ReportSender, report: Report, window: Window) -> None:
    """Add a row per compilation, up to the wire's limit. The process counts include all
    compilations."""
    key, day = to_instance_key(sender.source), window.minute // 1440
    for number, compile_ in enumerate(report.compiles[:MAX_COMPILES]):
        at = window.moment(compile_.at)
        facts.compiles[key, report.seq[0], number] = CompileFact(
            sender.source, day, report.seq[0], number, at, _compile_columns(compile_)
        )


def _compile_columns(compile_: Compile) -> dict[str, Any]:
    took = {phase: clamp_compile_seconds(value) for phase, value in compile_.seconds.items()}
    total = took.pop("total", None)
    return {
        "compile_id": clip_label(compile_.id, 64),
        "frame": clip_label(compile_.frame, 512),
        "file": clip_label(compile_.file, 512),
        "line": min(max(compile_.line, 0), MAX_INT32),
        "kind": clip_label(classify_compile(compile_), 16),
        "reason": clip_label(compile_.reason, MAX_REASON),
        "outcome": clip_label(compile_.outcome, 16),
        "total": total,
        "phases": {
            clip_label(phase, 32): seconds for phase, seconds in took.items() if seconds is not None
        },
        "cache_fx": clip_label(compile_.cache.get("fx", ""), 8),
        "cache_aot": clip_label(compile_.cache.get("aot", ""), 8),
        "cache_autotune": clip_label(compile_.cache.get("autotune", ""), 8),
        "cache_bundle": clip_label(compile_.cache.get("bundle", ""), 8),
        "cache_mega": clip_label(compile_.cache.get("mega", ""), 8),
        "cache_key": clip_label(compile_.key, 32),
        "miss": clip_label(compile_.miss, 200),
        "saved": clamp_compile_seconds(compile_.saved),
        "new_peak": None
        if compile_.new_peak is None
        else min(max(compile_.new_peak, 0), MAX_BYTES),
        "in_request": compile_.in_request,
        "reason_kind": clip_label(compile_.reason_kind, 16),
        "backend": clip_label(compile_.backend, 64),
        "mode": clip_label(compile_.mode, 64),
        "dynamic": clip_label(compile_.dynamic, 16),
        "fullgraph": compile_.fullgraph,
        "entries": compile_.entries,
        "entry_limit": compile_.limit,
    }


def findings_fold(facts: Facts, sender: ReportSender, report: Report, window: Window) -> None:
    """Add the findings of a report, and the findings derived from its facts."""
    version = sender.source.version
    for kind, text, where, seen, values in _iterate_findings(report, window):
        key = FindingKey(version.project, version.model, kind, fingerprint(text, where))
        seen.count = min(max(seen.count, 0), MAX_FINDING_COUNT)
        fact = FindingFact((seen.first, text, where), {sender.source: seen}, *values)
        if key in facts.findings:
            facts.findings[key].add(fact)
        else:
            facts.findings[key] = fact


FindingValues = tuple[frozenset[str], int, str]
"""Sampled values of a finding, the number of distinct values, and their pattern."""
NO_VALUES: FindingValues = (frozenset(), 0, "")


def _parse_values(finding: Finding) -> FindingValues:
    values = limit_values(clip_label(value, 200) for value in finding.values)
    return (
        values,
        min(max(finding.distinct, 0), MAX_INT32),
        finding.pattern if finding.pattern in PATTERNS else "",
    )


def _iterate_findings(
    report: Report, window: Window
) -> Iterator[tuple[str, str, str, Occurrences, FindingValues]]:
    """Yield kind, text, location, occurrences and values of each finding."""
    for finding in report.findings:
        if finding.kind in FINDING_KINDS:
            seen = Occurrences(
                finding.count, window.end, window.end, clamp_seconds(finding.seconds)
            )
            yield (
                finding.kind,
                clip_label(finding.text, MAX_REASON),
                clip_label(finding.where, 512),
                seen,
                _parse_values(finding),
            )
    reported = {finding.kind for finding in report.findings}
    for fact in report.facts:
        if (text := _describe_fact(fact, reported)) is not None:
            data, at = fact.data, window.moment(fact.at)
            where = f"{data['file']}:{data.get('line', '')}" if data.get("file") else ""
            count = count_ooms(fact) if fact.kind == "oom" else 1
            yield fact.kind, text, clip_label(where, 512), Occurrences(count, at, at), NO_VALUES


def _describe_fact(fact: Fact, reported: Collection[str]) -> str | None:
    """Return the text of the finding that a fact amounts to, None for other facts.

    `reported` are the kinds of the report's own findings.
    """
    data = fact.data
    if fact.kind == "latched_eager":
        frame, cause = data.get("frame", ""), data.get("cause", "")
        return clip_label(f"{frame} runs eager until the process restarts: {cause}", 512)
    if fact.kind == "compiled_nothing" and fact.kind not in reported:
        region = data.get("region", "")
        text = data.get("text") or f"{region}: compilation was requested, nothing was compiled"
        return clip_label(str(text), MAX_REASON)
    if fact.kind == "oom":
        return clip_label(str(data.get("text") or "out of memory"), MAX_REASON)
    if fact.kind == "parity":
        parity = parity_of(data)
        if parity.state == "failed" and parity.kind != "finite":
            # The measured differences vary between instances; all instances share the finding.
            return clip_label(f"{parity.name}: {parity.why or PARITY_FAILED_TEXT}", MAX_REASON)
    return None
