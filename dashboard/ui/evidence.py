"""A stored verdict's evidence as the pages say it; tolerant, because a row keeps the shape of the day it was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.fleet.figures.eager import causes_said
from dashboard.ui import words

NAMES = {
    "p50": "p50",
    "p95": "p95",
    "p99": "p99",
    "gpu_p50": "p50, GPU time",
    "gpu_p99": "p99, GPU time",
    "eager": "Eager calls",
    "errors": "Errors",
    "stalled": "Stalled calls",
    "stalled_time": "Stalled time",
    "throughput": "Throughput",
    "gpu_peak": "Peak GPU memory",
    "memory": "Peak GPU memory",
    "gpu_memory": "Peak GPU memory",
    "host_memory": "Host memory",
    "leak": "Memory growth",
    "compile_seconds": "Compile time",
    "compile_time": "Compile time",
    "recompiles": "Recompiles",
    "cache_misses": "Cache misses",
    "cache": "Cache misses",
    "cold_start": "Cold start",
}
RATES = ("per hour", "share per hour")
_WHY = {
    "no_baseline_in_stratum": "have no baseline on the same GPU type, mode and world size; they are not compared",
    "no_baseline_in_bucket": "have no baseline of the same shape; they are not compared",
    "too_few_calls": "come too seldom to compare",
    "agents_differ": "are not comparable: agent versions differ",
    "one_sided": "are not reported by both versions; they are not compared",
    "after_the_baseline_ended": "came after the baseline had ended; they are not compared",
    "no_baseline_on_host": "ran on a host where the baseline had not run; they are not compared",
    "past_too_short": "ran on a host where the baseline had run under 3 h; they are not compared",
}


@dataclass(frozen=True)
class EvidenceRow:
    """One metric of one region, in words."""

    metric: str
    name: str
    region: str
    label: str
    drives: bool
    caution: bool
    baseline: str
    candidate: str
    change: str
    interval: str
    instances: str
    raw_change: float | None
    causes: str = ""


def evidence_rows(evidence: Mapping[str, Any] | None, kind: str = "") -> list[EvidenceRow]:
    """The rows that were judged, those that drive the verdict first."""
    rows = [_row(entry, kind) for entry in _entries(evidence) if entry.get("judged", True)]
    order = {"REGRESSED": 0, "IMPROVED": 1, "NO CHANGE": 2}
    return sorted(rows, key=lambda row: (not row.drives, order.get(row.label, 3)))


def metric_row(rows: Iterable[EvidenceRow], *metrics: str) -> EvidenceRow | None:
    """The first row of one of these metrics."""
    return next((row for row in rows if row.metric in metrics), None)


def not_compared(evidence: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Share and reason of calls that stand beside nothing, the largest first, shares under 1 % left out."""
    found = (evidence or {}).get("not_compared")
    said = []
    for entry in found if isinstance(found, list) else []:
        share, why = entry.get("share"), str(entry.get("why", ""))
        if isinstance(share, int | float) and share >= 0.01:
            said.append((words.percent(share), _WHY.get(why, why.replace("_", " "))))
    return said


def _entries(evidence: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    found = (evidence or {}).get("evidence", (evidence or {}).get("metrics"))
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _row(entry: Mapping[str, Any], kind: str) -> EvidenceRow:
    metric = str(entry.get("metric", ""))
    label = str(entry.get("label", "NOT ENOUGH DATA")).replace("_", " ")
    share = entry.get("unit") == "share"
    drives = bool(entry.get("drives")) and kind != "watch"
    baseline, candidate = entry.get("baseline"), entry.get("candidate")
    raw = _turned(entry, "change")
    rate = entry.get("unit") == "per hour"
    if share or (raw is None and rate):
        base, cand = _number(baseline), _number(candidate)
        raw = cand - base if base is not None and cand is not None else None
    return EvidenceRow(
        metric=metric,
        name=NAMES.get(metric, metric.replace("_", " ")),
        region=str(entry.get("region", "")),
        label=label,
        drives=drives,
        caution=label == "REGRESSED" and not drives,
        baseline=_value(baseline, entry.get("unit")),
        candidate=_value(candidate, entry.get("unit")),
        change="not known" if raw is None else words.points(raw) if share else _more(raw) if rate else words.change(raw),
        interval=_interval(entry),
        instances=_instances(entry, affected=share),
        raw_change=raw,
        causes=causes_said(entry.get("causes")),
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _turned(entry: Mapping[str, Any], key: str) -> float | None:
    """A ratio of the metric itself: the judge turns a metric of which less is worse round, so that right is worse."""
    ratio = _number(entry.get(key))
    return 1 / (1 + ratio) - 1 if ratio is not None and entry.get("worse") == -1 and ratio > -1 else ratio


def _value(value: Any, unit: Any) -> str:
    found = _number(value)
    if found is None:
        return "no report"
    if unit in RATES:
        return f"{words.number(found)}{words.SPACE}/h" if unit == "per hour" else f"{words.percent(found)}/h"
    say = {"s": words.duration, "share": words.percent, "B": words.size, "bytes": words.size}.get(str(unit), words.number)
    return say(found)


def _more(difference: float) -> str:
    return f"{'+' if difference > 0 else ''}{words.number(difference)}{words.SPACE}/h"


def _interval(entry: Mapping[str, Any]) -> str:
    low, high = _turned(entry, "low"), _turned(entry, "high")
    if low is None or high is None or entry.get("unit") == "share":
        affected, total = entry.get("affected_instances"), entry.get("candidate_instances")
        return f"{affected} of {total}" if entry.get("unit") in ("share", "per hour") and isinstance(total, int) and total else "none yet"
    low, high = min(low, high), max(low, high)
    return f"{words.change(low).removesuffix(words.SPACE + '%').lstrip('+')} to {words.change(high).lstrip('+')}"


def _instances(entry: Mapping[str, Any], *, affected: bool) -> str:
    candidate = entry.get("candidate_instances", entry.get("instances_candidate"))
    baseline = entry.get("baseline_instances", entry.get("instances_baseline"))
    if candidate is None or baseline is None:
        return "not known"
    return f"{candidate} and {baseline}"
