"""An alert's name in a list: the model, the version and what is worse; the whole sentence stands in the time line."""

from __future__ import annotations

from typing import Any

from dashboard.alerts.evidence import SPACE, EvidenceLine, change_words, strongest_evidence

TIMES = ("p50", "gpu_p50", "p99", "gpu_p99")
COUNTS = {"eager": "eager", "errors": "fail"}
PHRASES = 2


def headline(*, model: str, version: str, sentence: str, evidence: Any) -> str:
    """`ranker 2026.11.3: p50 27 % slower, 28 % of calls eager`; without a metric that drives it, what the verdict says."""
    rows = [row for row in strongest_evidence(evidence, limit=len(TIMES) + PHRASES) if row["drives"]]
    # Levels before counts, one of each: several metrics of one kind tell the same story.
    levels = [_level(row) for row in rows if row["change"] is not None and row["unit"] != "share"]
    counts = [_count(row) for row in rows if row["change"] is None or row["unit"] == "share"]
    said = ", ".join([*levels[:1], *counts[:1]])
    return f"{model} {version}: {said or sentence.removeprefix(f'Roll back {version}: ')}"


def _level(row: EvidenceLine) -> str:
    change = row["change"] or 0.0
    if row["metric"] not in TIMES:
        return f"{row['name']} {change_words(change)}"
    size = change_words(change).lstrip("+\u2212")
    return f"{row['name']} {size} {'slower' if change >= 0 else 'faster'}"


def _count(row: EvidenceLine) -> str:
    share = row["candidate"]
    if row["metric"] in COUNTS and row["unit"] == "share" and share is not None:
        return f"{share * 100:.2g}{SPACE}% of calls {COUNTS[row['metric']]}"
    return f"{row['name']}: {row['text']}"
