"""Rows of the evidence table, each with its place in the interval plot; keys that are missing stay
unsaid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dashboard.fleet.metrics.eager_causes import format_causes
from dashboard.regressions.evidence_reader import Change, read_change, read_number
from dashboard.ui import words
from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.reasons import UNDECIDED

Raw = Mapping[str, Any]
Tone = Literal["rollback", "watch", "quiet", "open"]

TREND_KEYS = {"gpu_p50": "p50", "gpu_p95": "p95", "gpu_p99": "p99", "compile_time": "compile"}
NOT_JUDGED = "NOT JUDGED"
MUTED = "MUTED"


@dataclass(frozen=True)
class PlotInterval:
    """A change on the log scale, right is worse; `band` is the smallest change that matters, on
    both sides."""

    centre: float
    low: float
    high: float
    band: float
    tone: Tone


@dataclass(frozen=True)
class EvidenceRow:
    """One metric of one region in words. Without an interval, `note` stands in the plot instead;
    `follows` names its cause."""

    key: str
    title: str
    detail: str
    baseline: str
    candidate: str
    change: str
    spread: str
    label: str
    judged: bool
    drives: bool = False
    caution: bool = False
    matched: str = ""
    window: str = ""
    """Of which time both values are: matched 57 min."""
    excluded: str = ""
    """Events that a count leaves out, in words."""
    agree: tuple[int, int] | None = None
    """In how many strata the change points the same way, and of how many."""
    since: int | None = None
    effect: str = ""
    interval: PlotInterval | None = None
    note: str = ""
    follows: str = ""
    causes: str = ""
    """Counts by cause, in words."""
    frozen: Change = field(default_factory=lambda: Change(""))
    """The numbers."""
    tone: Tone = "quiet"
    unresolved: bool = False
    """Not compared, for a bucket in which an engine counts is wider than the difference."""

    @property
    def agreeing(self) -> str:
        """2 of 2; empty where it does not apply."""
        return f"{self.agree[0]} of {self.agree[1]}" if self.agree else ""

    @property
    def trend(self) -> str:
        """The key of the trend chart that shows the same metric."""
        return TREND_KEYS.get(self.key, self.key)

    @property
    def red(self) -> bool:
        """Red is for what drives a ROLL BACK, and nothing else."""
        return self.drives and not self.caution and self.label == "REGRESSED"


def build_evidence_rows(evidence: Raw, *, verdict: str = "") -> list[EvidenceRow]:
    """Every row of the evidence: those that drive the verdict first, the judge's order
    otherwise."""
    raw = [
        row
        for row in evidence.get("evidence") or []
        if isinstance(row, Mapping) and row.get("metric")
    ]
    several = len({row["region"] for row in raw if row.get("region")}) > 1
    rows = [_row(row, several, verdict) for row in raw]
    return sorted(rows, key=lambda row: (not row.judged, not row.drives))


def _row(raw: Raw, several_regions: bool, verdict: str) -> EvidenceRow:
    key = str(raw["metric"])
    metric = find_metric(key)
    detail = metric.detail or str(raw.get("unit") or "")
    if several_regions and raw.get("region"):
        detail = f"{detail}, {raw.get('region', '')}"
    known = read_change(raw)
    unit, label, judged = known.unit, known.label, known.judged
    drives = known.drives and judged
    caution = label == "REGRESSED" and not (drives and known.hard and verdict != "watch")
    tone: Tone = "open" if label == "NOT ENOUGH DATA" or not judged else "quiet"
    if label == "REGRESSED" and judged:
        tone = "watch" if caution else "rollback"
    cause = str(raw.get("explained_by") or "")
    interval = _interval(raw, tone) if unit != "share" and not known.bounded else None
    return EvidenceRow(
        key=key,
        title=metric.title,
        detail=detail,
        baseline=known.baseline_said,
        candidate=known.candidate_said,
        change=known.change_said,
        spread=known.range_said or known.affected_said,
        label=label if judged else MUTED if known.muted else NOT_JUDGED,
        judged=judged,
        drives=drives,
        caution=caution,
        matched=words.number(raw["matched_minutes"])
        if isinstance(raw.get("matched_minutes"), int)
        else "",
        window=known.window_said,
        excluded=known.excluded_said,
        agree=_count_agreeing(raw, interval),
        frozen=known,
        since=raw.get("since")
        if label == "REGRESSED" and isinstance(raw.get("since"), int)
        else None,
        effect=_effect(raw, unit),
        interval=interval,
        note="" if interval else _note(known),
        follows=find_metric(cause).title if cause else "",
        causes=format_causes(known.causes),
        tone=tone,
        unresolved=not several_regions and raw.get("reason") == "bucket_too_wide",
    )


def _interval(raw: Raw, tone: Tone) -> PlotInterval | None:
    centre, low, high = (read_number(raw, key) for key in ("change", "low", "high"))
    if centre is None or low is None or high is None or min(centre, low, high) <= -1:
        return None
    return PlotInterval(
        math.log1p(centre),
        math.log1p(low),
        math.log1p(high),
        math.log1p(read_number(raw, "smallest_effect") or 0.0),
        tone,
    )


def _count_agreeing(raw: Raw, interval: PlotInterval | None) -> tuple[int, int] | None:
    strata, agreeing = raw.get("strata"), raw.get("strata_agreeing")
    if interval and isinstance(strata, Sequence) and strata and isinstance(agreeing, int):
        return agreeing, len(strata)
    return None


def _effect(raw: Raw, unit: str) -> str:
    effect = read_number(raw, "smallest_effect")
    if effect is None:
        return ""
    times, points = read_number(raw, "times"), read_number(raw, "points")
    if (
        unit == "share"
        and times is not None
        and points is not None
        and read_number(raw, "change") is not None
    ):
        return f"matters from {words.number(times)} times and {words.points(points)}"
    if unit == "share":
        of = "compile seconds" if raw.get("metric") == "cache" else "an instance’s calls"
        return f"counts from {words.percent(effect)} of {of}"
    if unit == "per hour":
        return f"counts from {words.number(effect)} an hour on an instance"
    return f"matters from {words.percent(effect)}"


def _note(known: Change) -> str:
    if known.baseline is None or known.candidate is None:
        return UNDECIDED.get(known.reason, "nothing to compare yet")
    return f"{known.baseline_said} to {known.candidate_said}"
