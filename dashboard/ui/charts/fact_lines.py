"""Confirmed facts of a stored verdict as lines below its sentence; incomplete facts are omitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.regressions.evidence_reader import read_drifts, read_facts
from dashboard.regressions.judge.certain_facts import describe_fact
from dashboard.regressions.judge.text.drift import describe_drift
from dashboard.regressions.judge.text.sentences import capitalize
from dashboard.regressions.stored_evidence import StoredFact
from dashboard.vocabulary import numbers
from dashboard.vocabulary.severity import NOT_ENOUGH_DATA, WATCH


@dataclass(frozen=True)
class FactLine:
    """One fact: the text, the number of affected instances, and the first minute."""

    text: str
    where: str
    since: int | None
    mark: str


def fact_lines(evidence: Any, *, sentence: str = "") -> list[FactLine]:
    """Lines of the facts, new facts first, without facts that the sentence already states."""
    lines = []
    for fact in read_facts(evidence):
        text = describe_fact(fact)
        named = bool(fact.about) and f"`{fact.about}`" in sentence
        if text.lower() not in sentence.lower() and not named:
            mark = fact.severity if fact.news else NOT_ENOUGH_DATA
            lines.append(FactLine(capitalize(text), _where(fact), fact.since, mark))
    return lines + drift_lines(evidence, sentence=sentence)


def drift_lines(evidence: Any, *, sentence: str = "") -> list[FactLine]:
    """Lines about a version that is slower than on its first day."""
    return [
        FactLine(
            capitalize(text),
            f"over {numbers.plural(drift.instances, 'instance')}"
            if drift.instances is not None
            else "",
            drift.since,
            WATCH,
        )
        for drift in read_drifts(evidence)
        if (text := describe_drift(drift)) not in sentence
    ]


def _where(fact: StoredFact) -> str:
    on = f"on {numbers.plural(len(fact.instances), 'instance')}" if fact.instances else ""
    return ", ".join(filter(None, (on, _describe_baseline(fact))))


def _describe_baseline(fact: StoredFact) -> str:
    if fact.on_baseline:
        return f"also on {numbers.plural(fact.on_baseline, 'instance')} of the baseline"
    passed = fact.passed_on_baseline
    if fact.kind in ("parity", "shadow_parity"):
        return (
            f"baseline: passed on {numbers.plural(passed, 'instance')}"
            if passed
            else "baseline not checked"
        )
    if fact.kind == "compiled_nothing":
        if fact.baseline_silent:
            return "not comparable with the baseline: agent versions differ"
        return f"{'' if passed else 'not '}served compiled on the baseline"
    if fact.kind == "non_finite":
        return "baseline: none in sampled calls"
    return "not on the baseline"
