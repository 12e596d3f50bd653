"""Evidence lines: the strongest evidence of a verdict, one line of text each."""

from __future__ import annotations

import math
from typing import Any, TypedDict

from dashboard.regressions.evidence_reader import read_changes, read_facts
from dashboard.regressions.judge.certain_facts import describe_fact
from dashboard.regressions.stored_evidence import NO_VALUE, Change, StoredFact
from dashboard.vocabulary.numbers import SPACE
from dashboard.vocabulary.severity import LABELS, ROLL_BACK, WATCH

RANKS_DIVERGED = "ranks_diverged"
"""Sorted before changes: in an alert about something else, diverged ranks are the news."""


class EvidenceLine(TypedDict):
    """One metric of one region: `change` is the ratio minus 1 with its interval, and `text` is the
    sentence for people.

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
    """The strongest evidence of a verdict, in this order: wrong results, diverged ranks, the
    largest changes, other confirmed facts. Without any of these, the largest evaluated changes."""
    changes, facts = read_changes(evidence), read_facts(evidence)
    driving = [one for one in changes if one.drives]
    regressed = [one for one in changes if one.regressed and not one.drives]
    wrong = [one for one in facts if one.severity == ROLL_BACK]
    apart = [one for one in facts if one.severity == WATCH and one.kind == RANKS_DIVERGED]
    other = [one for one in facts if one.severity == WATCH and one.kind != RANKS_DIVERGED]
    certain = driving or regressed or wrong or apart or other
    rest = [] if certain else [one for one in changes if one.judged]
    largest = [
        one
        for group in (driving, regressed, rest)
        for one in sorted(group, key=_weight, reverse=True)
    ]
    lines = [*map(_fact, (*wrong, *apart)), *map(_line, largest), *map(_fact, other)]
    return [line for line in lines if line["text"]][:limit]


def list_driving_metrics(evidence: Any) -> set[tuple[str, str]]:
    """Metric and region of every row that drives the verdict."""
    return {(one.metric, one.region) for one in read_changes(evidence) if one.drives}


def _fact(fact: StoredFact) -> EvidenceLine:
    """A confirmed fact has no interval, only text."""
    count = len(fact.instances or ())
    on = f", on {count}{SPACE}instance{'' if count == 1 else 's'}" if count else ""
    line = _line(Change(fact.kind, affected_instances=count or None))
    line["text"] = describe_fact(fact) + on
    return line


def _weight(change: Change) -> float:
    if change.change is not None:
        return abs(math.log1p(max(change.change, -0.999)))
    if change.affected_share is not None:
        return change.affected_share
    return (change.affected_instances or 0) / max(change.candidate_instances or 1, 1)


def _line(change: Change) -> EvidenceLine:
    # The first release stored the name of the metric as the label of its row.
    name = change.named.name if change.label in LABELS else change.label
    parts = (format_change(change), change.causes_said, _instances(change))
    return EvidenceLine(
        metric=change.metric,
        name=name or "A metric",
        region=change.region,
        unit=change.unit,
        baseline=change.baseline,
        candidate=change.candidate,
        change=change.change,
        low=change.low,
        high=change.high,
        instances_baseline=change.baseline_instances,
        instances_candidate=change.candidate_instances,
        affected_instances=change.affected_instances,
        drives=change.drives,
        causes=dict(change.causes),
        minutes=change.minutes,
        window=change.window,
        baseline_at_most=change.baseline_at_most,
        candidate_at_most=change.candidate_at_most,
        text="; ".join(filter(None, parts)),
    )


def format_change(change: Change) -> str:
    """`+31 % (13 to 52 %), 19.3 to 25.3 ms, matched 57 min`: the change, the two values behind it,
    and their window."""
    if change.unit == "share" and change.candidate is not None:
        said = _share(change)
    elif change.unit == "per hour" and change.candidate is not None:
        before = f" (before: {change.baseline_said})" if change.baseline is not None else ""
        said = change.candidate_said + before
    elif change.change_said == NO_VALUE:
        return ""
    else:
        interval = f" ({change.range_said})" if change.range_said else ""
        both = change.baseline is not None and change.candidate is not None
        values = f", {change.baseline_said} to {change.candidate_said}" if both else ""
        said = f"{change.change_said}{interval}{values}"
    return ", ".join(filter(None, (said, change.window_said, change.excluded_said)))


def _share(change: Change) -> str:
    """`1 of 88 calls (1.1%), before: 0 of 210 (0%)`; a row without counts has shares alone."""
    if change.baseline is None:
        return change.candidate_counted
    if change.candidate_counts and change.baseline_counts:
        return f"{change.candidate_counted}, before: {change.baseline_counted}"
    return f"{change.candidate_counted} (before: {change.baseline_said})"


def _instances(change: Change) -> str:
    total, before = change.candidate_instances, change.baseline_instances
    affected = change.affected_instances
    if total is None:
        return ""
    if affected is not None and (change.change is None or (affected and change.unit == "share")):
        return f"{affected} of {total}{SPACE}instances"
    return f"{total}{SPACE}instances" + (f" against {before}" if before is not None else "")
