"""Picks the strongest evidence of a verdict and says it in one line each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypedDict

from dashboard.fleet.figures.eager import causes_stored, causes_words
from dashboard.regressions.judge.facts import fact_words

SPACE = "\u00a0"
MINUS = "\u2212"
LABELS = {"REGRESSED", "IMPROVED", "NO CHANGE", "NOT ENOUGH DATA"}
NAMES = {
    "p50": "p50",
    "gpu_p50": "p50, GPU time",
    "p99": "p99",
    "gpu_p99": "p99, GPU time",
    "eager": "Eager calls",
    "errors": "Errors",
    "stalled": "Stalled calls",
    "stalled_time": "Stalled time",
    "throughput": "Throughput",
    "memory": "Peak GPU memory",
    "gpu_memory": "Peak GPU memory",
    "host_memory": "Host memory",
    "leak": "Memory growth",
    "compile_time": "Compile time",
    "recompiles": "Recompiles",
    "cache": "Cache misses",
    "cold_start": "Cold start",
    "parity": "Wrong result",
    "shadow_parity": "Wrong result",
    "non_finite": "NaN or infinite",
    "latched_eager": "Runs eager",
    "compiled_nothing": "Compiled nothing",
    "stuck_compiling": "Stuck",
    "budget_burning": "Budget",
    "stalled_calls": "Stalled calls",
    "ranks_diverged": "Ranks",
}
OF = {
    "cache": "compile seconds",
    "stalled": "calls waited for a compilation after warm-up",
    "stalled_time": "call time was spent waiting for compilations",
}
"""What a share is of."""
RANKS = "ranks_diverged"
"""Told before changes: under an alert of something else this is what is new."""


class EvidenceLine(TypedDict):
    """One metric of one region: `change` of the metric itself as a ratio minus 1 with its interval, and `text` in words."""

    metric: str
    name: str
    region: str
    unit: str
    baseline: float | None
    candidate: float | None
    change: float | None
    low: float | None
    high: float | None
    instances_baseline: int | None
    instances_candidate: int | None
    affected_instances: int | None
    drives: bool
    causes: dict[str, int]
    text: str


def strongest_evidence(evidence: Any, limit: int = 3) -> list[EvidenceLine]:
    """What the verdict rests on: wrong results, ranks that went apart, the largest changes, then other facts that are certain; without any
    of them the largest changes that were judged."""
    rows = list(_rows(evidence))
    driving = [row for row in rows if row.get("drives") is True]
    regressed = [row for row in rows if row.get("label") == "REGRESSED" and row not in driving]
    wrong, facts = (_facts(evidence, severity) for severity in ("roll_back", "watch"))
    rest = [] if driving or regressed or wrong or facts else [row for row in rows if row.get("judged", True)]
    changes = [_line(row) for group in (driving, regressed, rest) for row in sorted(group, key=_weight, reverse=True)]
    facts.sort(key=lambda line: line["metric"] != RANKS)
    apart = sum(line["metric"] == RANKS for line in facts)
    return [line for line in (*wrong, *facts[:apart], *changes, *facts[apart:]) if line["text"]][:limit]


def driving_metrics(evidence: Any) -> set[tuple[str, str]]:
    """Metric and region of every row that the verdict rests on."""
    return {(_text(row, "metric"), _text(row, "region")) for row in _rows(evidence) if row.get("drives") is True}


def change_words(ratio: float) -> str:
    """+31 %, −6 %; beyond ten times the factor."""
    if ratio >= 9:
        return f"{ratio + 1:,.0f} times"
    percent = ratio * 100
    rounded = round(percent, 1) if abs(percent) < 9.5 else round(percent)
    return f"{'+' if rounded > 0 else MINUS if rounded < 0 else ''}{abs(rounded):g}{SPACE}%"


def share_words(share: float) -> str:
    """4.1 %: part of all calls."""
    return f"{share * 100:.3g}{SPACE}%"


def _rows(evidence: Any) -> Iterable[dict[str, Any]]:
    found = evidence.get("metrics", evidence.get("evidence")) if isinstance(evidence, dict) else None
    return (row for row in found if isinstance(row, dict)) if isinstance(found, list) else ()


def _facts(evidence: Any, severity: str) -> list[EvidenceLine]:
    found = evidence.get("facts") if isinstance(evidence, dict) else None
    return [_fact(one) for one in found if isinstance(one, dict) and one.get("severity") == severity] if isinstance(found, list) else []


def _fact(fact: dict[str, Any]) -> EvidenceLine:
    """What is certain has no interval: it is told in words."""
    line = _line({"metric": _text(fact, "kind")})
    instances = fact.get("instances")
    count = len(instances) if isinstance(instances, list | tuple) else 0
    line["affected_instances"] = count or None
    line["text"] = fact_words(fact) + (f", on {count}{SPACE}instance{'' if count == 1 else 's'}" if count else "")
    return line


def _weight(row: dict[str, Any]) -> float:
    change, share = _number(row, "change"), _number(row, "affected_share")
    affected, instances = _number(row, "affected_instances"), _number(row, "instances_candidate", "candidate_instances")
    if change is not None:
        return abs(math.log1p(max(change, -0.999)))
    return share if share is not None else (affected or 0) / max(instances or 1, 1)


def _line(row: dict[str, Any]) -> EvidenceLine:
    metric, label, region = _text(row, "metric"), _text(row, "label"), _text(row, "region")
    change, low, high = _number(row, "change"), _number(row, "low"), _number(row, "high")
    if row.get("worse") == -1:
        change, low, high = _inverse(change), _inverse(high), _inverse(low)
    line = EvidenceLine(
        metric=metric,
        name=label if label and label not in LABELS else NAMES.get(metric, metric.replace("_", " ") or "A metric"),
        region=region,
        unit=_text(row, "unit"),
        baseline=_number(row, "baseline"),
        candidate=_number(row, "candidate"),
        change=change,
        low=low,
        high=high,
        instances_baseline=_count(row, "instances_baseline", "baseline_instances"),
        instances_candidate=_count(row, "instances_candidate", "candidate_instances"),
        affected_instances=_count(row, "affected_instances"),
        drives=row.get("drives") is True,
        causes=causes_stored(row.get("causes")),
        text="",
    )
    line["text"] = "; ".join(part for part in (_change(line), causes_words(line["causes"]), _instances(line)) if part)
    return line


def _change(line: EvidenceLine) -> str:
    change, low, high = line["change"], line["low"], line["high"]
    if change is not None and line["unit"] != "share":
        interval = f" ({change_words(low)} to {change_words(high)})" if low is not None and high is not None else ""
        return change_words(change) + interval
    if line["unit"] == "share" and line["candidate"] is not None:
        before = f" (before: {share_words(line['baseline'])})" if line["baseline"] is not None else ""
        of = OF.get(line["metric"], "calls")
        return f"{share_words(line['candidate'])} of {of}{before}"
    if line["unit"] == "per hour" and line["candidate"] is not None:
        before = f" (before: {line['baseline']:.3g})" if line["baseline"] is not None else ""
        return f"{line['candidate']:.3g} an hour{before}"
    return ""


def _instances(line: EvidenceLine) -> str:
    candidate, baseline, affected = line["instances_candidate"], line["instances_baseline"], line["affected_instances"]
    if candidate is None:
        return ""
    if affected is not None and (line["change"] is None or (affected and line["unit"] == "share")):
        return f"{affected} of {candidate}{SPACE}instances"
    return f"{candidate}{SPACE}instances" + (f" against {baseline}" if baseline is not None else "")


def _inverse(ratio: float | None) -> float | None:
    return None if ratio is None or ratio <= -1 else 1 / (1 + ratio) - 1


def _number(row: dict[str, Any], *keys: str) -> float | None:
    for key in keys:
        value = row.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


def _count(row: dict[str, Any], *keys: str) -> int | None:
    value = _number(row, *keys)
    return None if value is None else int(value)


def _text(row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""
