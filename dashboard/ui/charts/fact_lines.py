"""Certain facts of a stored verdict as lines under its sentence; what is not whole is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.regressions.judge.certain_facts import describe_fact
from dashboard.regressions.judge.text.drift import describe_drift
from dashboard.ui import words


@dataclass(frozen=True)
class FactLine:
    """One fact: what is the matter, on how many of the version's instances, and since which
    minute."""

    text: str
    where: str
    since: int | None
    mark: str


def fact_lines(evidence: Mapping[str, Any] | None, *, sentence: str = "") -> list[FactLine]:
    """News first; what the verdict's sentence says already is not said twice."""
    lines = []
    stored = (evidence or {}).get("facts")
    for entry in stored if isinstance(stored, list) else []:
        if not isinstance(entry, Mapping) or not entry.get("kind"):
            continue
        text, about = describe_fact(entry), entry.get("about")
        if text.lower() not in sentence.lower() and not (about and f"`{about}`" in sentence):
            since = entry.get("since")
            lines.append(
                FactLine(
                    capitalise(text),
                    _where(entry),
                    since if isinstance(since, int) else None,
                    _mark(entry),
                )
            )
    return lines + drift_lines(evidence, sentence=sentence)


def drift_lines(evidence: Mapping[str, Any] | None, *, sentence: str = "") -> list[FactLine]:
    """Where a version is slower than it was itself."""
    stored = (evidence or {}).get("drift")
    entries = [
        entry
        for entry in (stored if isinstance(stored, list) else [])
        if isinstance(entry, Mapping)
    ]
    told = [
        (describe_drift(entry), entry.get("instances"), entry.get("since")) for entry in entries
    ]
    return [
        FactLine(
            capitalise(text),
            f"over {words.plural(instances, 'instance')}" if isinstance(instances, int) else "",
            since if isinstance(since, int) else None,
            "watch",
        )
        for text, instances, since in told
        if text not in sentence
    ]


def capitalise(text: str) -> str:
    """A line starts with a capital, except where it starts with a name."""
    return text[:1].upper() + text[1:]


def _where(entry: Mapping[str, Any]) -> str:
    instances, before = entry.get("instances"), entry.get("on_baseline")
    on = (
        f"on {words.plural(len(instances), 'instance')}"
        if isinstance(instances, list) and instances
        else ""
    )
    passed = entry.get("passed_on_baseline")
    also = (
        f"also on {words.plural(before, 'instance')} of the baseline"
        if isinstance(before, int) and before
        else "not on the baseline"
    )
    if entry.get("kind") in ("parity", "shadow_parity") and not before:
        passes = isinstance(passed, int) and passed
        also = (
            f"passed on {words.plural(int(passes), 'instance')} of the baseline"
            if passes
            else "not compared on the baseline"
        )
    if entry.get("kind") == "compiled_nothing" and not before:
        also = (
            "served compiled on the baseline" if passed else "not served compiled on the baseline"
        )
        if entry.get("baseline_silent") is True:
            also = "not comparable with the baseline: agent versions differ"
    if entry.get("kind") == "non_finite" and not before:
        also = "none in sampled calls of the baseline"
    return ", ".join(part for part in (on, also) if part)


def _mark(entry: Mapping[str, Any]) -> str:
    severity = entry.get("severity")
    return str(severity) if severity in ("roll_back", "watch") else "not_enough_data"
