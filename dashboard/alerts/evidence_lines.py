"""Picks the strongest evidence of a verdict and says it in one line each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypedDict

from dashboard.common.numbers import SPACE
from dashboard.fleet.metrics.eager_causes import format_causes
from dashboard.regressions.evidence_reader import NO_VALUE, Change, read_change
from dashboard.regressions.evidence_reader import read_number as _number
from dashboard.regressions.evidence_reader import read_text as _text
from dashboard.regressions.judge.certain_facts import describe_fact
from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.severity import LABELS

RANKS_DIVERGED = "ranks_diverged"
"""Told before changes: under an alert of something else this is what is new."""


class EvidenceLine(TypedDict):
    """One metric of one region: `change` of the metric itself as a ratio minus 1 with its interval,
    and `text` in words.

    `minutes` is the window of both values, and `window` its kind: matched, last or start.
    `baseline_at_most`, `candidate_at_most`: the value is only a bound, and so is the change."""

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
    minutes: int | None
    window: str
    baseline_at_most: bool
    candidate_at_most: bool
    text: str


def select_strongest_evidence(evidence: Any, limit: int = 3) -> list[EvidenceLine]:
    """What the verdict rests on: wrong results, ranks that went apart, the largest changes, then
    other facts that are certain; without any of them the largest changes that were judged."""
    rows = list(_rows(evidence))
    driving = [row for row in rows if row.get("drives") is True]
    regressed = [row for row in rows if row.get("label") == "REGRESSED" and row not in driving]
    wrong, facts = (_facts(evidence, severity) for severity in ("roll_back", "watch"))
    rest = (
        []
        if driving or regressed or wrong or facts
        else [row for row in rows if row.get("judged", True)]
    )
    changes = [
        _line(row)
        for group in (driving, regressed, rest)
        for row in sorted(group, key=_weight, reverse=True)
    ]
    facts.sort(key=lambda line: line["metric"] != RANKS_DIVERGED)
    apart = sum(line["metric"] == RANKS_DIVERGED for line in facts)
    return [line for line in (*wrong, *facts[:apart], *changes, *facts[apart:]) if line["text"]][
        :limit
    ]


def list_driving_metrics(evidence: Any) -> set[tuple[str, str]]:
    """Metric and region of every row that the verdict rests on."""
    return {
        (_text(row, "metric"), _text(row, "region"))
        for row in _rows(evidence)
        if row.get("drives") is True
    }


def _rows(evidence: Any) -> Iterable[dict[str, Any]]:
    found = (
        evidence.get("metrics", evidence.get("evidence")) if isinstance(evidence, dict) else None
    )
    return (row for row in found if isinstance(row, dict)) if isinstance(found, list) else ()


def _facts(evidence: Any, severity: str) -> list[EvidenceLine]:
    found = evidence.get("facts") if isinstance(evidence, dict) else None
    return (
        [_fact(one) for one in found if isinstance(one, dict) and one.get("severity") == severity]
        if isinstance(found, list)
        else []
    )


def _fact(fact: dict[str, Any]) -> EvidenceLine:
    """What is certain has no interval: it is told in words."""
    line = _line({"metric": _text(fact, "kind")})
    instances = fact.get("instances")
    count = len(instances) if isinstance(instances, list | tuple) else 0
    line["affected_instances"] = count or None
    line["text"] = describe_fact(fact) + (
        f", on {count}{SPACE}instance{'' if count == 1 else 's'}" if count else ""
    )
    return line


def _weight(row: dict[str, Any]) -> float:
    change, share = _number(row, "change"), _number(row, "affected_share")
    affected, instances = (
        _number(row, "affected_instances"),
        _number(row, "instances_candidate", "candidate_instances"),
    )
    if change is not None:
        return abs(math.log1p(max(change, -0.999)))
    return share if share is not None else (affected or 0) / max(instances or 1, 1)


def _line(row: dict[str, Any]) -> EvidenceLine:
    metric, label, region = _text(row, "metric"), _text(row, "label"), _text(row, "region")
    known = read_change(row)
    line = EvidenceLine(
        metric=metric,
        name=label if label and label not in LABELS else find_metric(metric).name or "A metric",
        region=region,
        unit=known.unit,
        baseline=known.baseline,
        candidate=known.candidate,
        change=known.change,
        low=known.low,
        high=known.high,
        instances_baseline=known.baseline_instances,
        instances_candidate=known.candidate_instances,
        affected_instances=known.affected_instances,
        drives=known.drives,
        causes=dict(known.causes),
        minutes=known.minutes,
        window=known.window,
        baseline_at_most=known.baseline_at_most,
        candidate_at_most=known.candidate_at_most,
        text="",
    )
    line["text"] = "; ".join(
        part
        for part in (format_change(known), format_causes(known.causes), _instances(line))
        if part
    )
    return line


def format_change(known: Change) -> str:
    """+31 % (13 to 52 %), 19.3 to 25.3 ms, matched 57 min: the change with the two values it is
    computed from, and their window."""
    if known.unit in ("share", "per hour") and known.candidate is not None:
        unit = (
            f" of {find_metric(known.metric).share_of or 'calls'}" if known.unit == "share" else ""
        )
        before = f" (before: {known.baseline_said})" if known.baseline is not None else ""
        said = f"{known.candidate_said}{unit}{before}"
    elif known.change_said == NO_VALUE:
        return ""
    else:
        interval = f" ({known.range_said})" if known.range_said else ""
        both = known.baseline is not None and known.candidate is not None
        said = f"{known.change_said}{interval}" + (
            f", {known.baseline_said} to {known.candidate_said}" if both else ""
        )
    return ", ".join(part for part in (said, known.window_said, known.excluded_said) if part)


def _instances(line: EvidenceLine) -> str:
    candidate, baseline, affected = (
        line["instances_candidate"],
        line["instances_baseline"],
        line["affected_instances"],
    )
    if candidate is None:
        return ""
    if affected is not None and (line["change"] is None or (affected and line["unit"] == "share")):
        return f"{affected} of {candidate}{SPACE}instances"
    return f"{candidate}{SPACE}instances" + (f" against {baseline}" if baseline is not None else "")
