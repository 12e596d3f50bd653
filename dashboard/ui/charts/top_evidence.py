"""Top evidence of a verdict, at most three items: the driving metrics, then the cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.ui.charts.evidence_table import EvidenceRow

MAX_EVIDENCE = 3


@dataclass(frozen=True)
class TopEvidence:
    """A heading with its label, one value, the text next to it, and a line below; `code` is text of
    the agent."""

    title: str
    figure: str
    beside: str
    below: str
    label: str = ""
    drives: bool = False
    caution: bool = False
    tag: str = ""
    code: str = ""


def select_top_evidence(
    rows: Sequence[EvidenceRow], causes: Iterable[TopEvidence]
) -> list[TopEvidence]:
    """The rows that drive the verdict and the first cause; without such rows, the rows with a worse
    label."""
    found = [row for row in rows if row.drives] or [
        row for row in rows if row.judged and row.label == "REGRESSED"
    ]
    cause = list(causes)[:1]
    return (
        [_proof(row) for row in found[: MAX_EVIDENCE - len(cause)]] + cause
        if found or cause
        else []
    )


def _proof(row: EvidenceRow) -> TopEvidence:
    title = f"{row.title}, {row.detail}" if row.key.endswith(("p50", "p95", "p99")) else row.title
    if row.interval:
        beside = f"{row.spread}, {row.effect}" if row.effect else row.spread
        agree = f"{row.agreeing} cohorts agree" if row.agreeing else ""
        below = "; ".join(
            part
            for part in (f"{row.baseline} to {row.candidate}", row.frozen.window_said, agree)
            if part
        )
        return TopEvidence(title, row.change, beside, below, row.label, row.drives, row.caution)
    return TopEvidence(
        title,
        row.candidate,
        ", ".join(part for part in (f"was {row.baseline}", row.frozen.window_said) if part),
        "; ".join(part for part in (row.spread, row.effect) if part),
        row.label,
        row.drives,
        row.caution,
    )
