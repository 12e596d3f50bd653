"""Alert title: model, version and the main change, for lists; the timeline shows the full
sentence."""

from __future__ import annotations

import re
from typing import Any

from dashboard.alerts.evidence_lines import EvidenceLine, select_strongest_evidence
from dashboard.regressions.stored_evidence import RATES
from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.numbers import change, difference, is_factor, magnitude, percent

MAX_DRIVERS, MAX_ROWS = 6, 40
OTHER_RANKS_PATTERN = re.compile(r"\bthe [\d,]+[\s\u00a0]others?\b")


def build_alert_title(*, model: str, version: str, sentence: str, evidence: Any) -> str:
    """`ranker 2: p50 27 % slower, 28 % of calls run eager`; the sentence of the verdict if no
    metric drives it."""
    rows = [row for row in select_strongest_evidence(evidence, limit=MAX_DRIVERS) if row["drives"]]
    rows = [row for row in rows if _excludes_zero(row)] or rows
    # Levels before counts, one of each: several metrics of one kind describe the same change.
    regions = {
        row["region"]
        for row in select_strongest_evidence(evidence, limit=MAX_ROWS)
        if row["region"]
    }
    levels = [_level(row, named=len(regions) > 1) for row in rows if _is_level(row)]
    counts = [_count(row) for row in rows if not _is_level(row)]
    said = ", ".join([*levels[:1], *counts[:1]])
    # The number of other ranks in a report changes while a job starts; only the timeline shows it.
    without_count = OTHER_RANKS_PATTERN.sub(
        "the others", sentence.removeprefix(f"Roll back {version}: ")
    )
    return f"{model} {version}: {said or without_count}"


def _excludes_zero(row: EvidenceLine) -> bool:
    """True if the interval of a row excludes no change, or if the row has no interval."""
    low, high = row["low"], row["high"]
    return low is None or high is None or low > 0.0 or high < 0.0


def _is_level(row: EvidenceLine) -> bool:
    return row["unit"] in RATES or (row["change"] is not None and row["unit"] != "share")


def _level(row: EvidenceLine, *, named: bool) -> str:
    """`named`: the evidence covers several regions, so the title names the region of this row."""
    ratio, before, after = row["change"] or 0.0, row["baseline"], row["candidate"]
    name = f"{row['name']} of {row['region']}" if named and row["region"] else row["name"]
    least = "at least " if row["baseline_at_most"] or row["candidate_at_most"] else ""
    if row["unit"] in RATES and before is not None and after is not None:
        return f"{name} {difference(after, before, row['unit'])}"
    metric = find_metric(row["metric"])
    if metric.kind != "latency":
        return f"{name} {least}{change(ratio)}"
    adjective = metric.worse if ratio >= 0 else metric.better
    way = f"as {metric.factor_word}" if is_factor(ratio) else adjective
    return f"{name} {least}{magnitude(ratio)} {way}"


def _count(row: EvidenceLine) -> str:
    share, predicate = row["candidate"], find_metric(row["metric"]).predicate
    if row["unit"] == "share" and share is not None and predicate:
        return f"{percent(share)} {predicate}"
    return f"{row['name']}: {row['text']}"
