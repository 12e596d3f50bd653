"""Recompile cause: counts of recompiles by cause for the evidence, and the most frequent cause as
text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dashboard.fleet.metrics.recompile_reasons import reason_sentence
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.compilations.recent_recompiles import (
    RecompileCount,
    count_recompiles,
)
from dashboard.regressions.judge.result import Outcome

METRIC = "recompiles"
MAX_REASON_CHARS = 120


def explain_recompiles(
    outcome: Outcome, *, deployment: Deployment, now_minute: int
) -> tuple[Outcome, str]:
    """The outcome with the causes of its recompiles, and the cause as text. No query if recompiles
    are not a regression."""
    if not any(row.metric == METRIC and row.label == "REGRESSED" for row in outcome.evidence):
        return outcome, ""
    found = count_recompiles(deployment=deployment, now_minute=now_minute)
    counts: Counter[str] = Counter()
    for one in found:
        counts[one.kind or "not known"] += one.times
    causes = dict(counts.most_common())
    rows = tuple(
        replace(row, causes=causes) if row.metric == METRIC else row for row in outcome.evidence
    )
    return replace(outcome, evidence=rows), describe_main_cause(found)


def describe_main_cause(found: Sequence[RecompileCount]) -> str:
    """The most frequent cause; empty if no reason is known."""
    first = next((one for one in found if one.kind or one.text), None)
    if first is None:
        return ""
    return reason_sentence(
        first.kind, f"`{first.frame or 'a frame'}`", first.text[:MAX_REASON_CHARS]
    )
