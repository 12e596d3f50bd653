"""Evidence table: the metrics of a stored verdict as rows, with the place in the interval plot."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from dashboard.regressions.evidence_reader import read_changes
from dashboard.regressions.stored_evidence import Change
from dashboard.vocabulary import numbers
from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.reasons import UNDECIDED
from dashboard.vocabulary.severity import NO_ANSWER, REGRESSED, WATCH

Tone = Literal["rollback", "watch", "quiet", "open"]

TREND_KEYS = {"gpu_p50": "p50", "gpu_p95": "p95", "gpu_p99": "p99", "compile_time": "compile"}
NOT_JUDGED = "NOT JUDGED"
MUTED = "MUTED"


@dataclass(frozen=True)
class PlotInterval:
    """A change on the log scale, with worse to the right; `band` is the threshold on both sides."""

    centre: float
    low: float
    high: float
    band: float
    tone: Tone


@dataclass(frozen=True)
class EvidenceRow:
    """One metric of one region as text. Without an interval, the plot shows `note`; `follows` names
    the causing metric."""

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
    """Time span of both values, such as "matched 57 min"."""
    excluded: str = ""
    """Events that the count excludes, as text."""
    agree: tuple[int, int] | None = None
    """Number of strata whose change has the same direction, and number of strata."""
    since: int | None = None
    onset: tuple[int, int] | None = None
    effect: str = ""
    interval: PlotInterval | None = None
    note: str = ""
    follows: str = ""
    causes: str = ""
    """Counts by cause, as text."""
    frozen: Change = field(default_factory=lambda: Change(""))
    """The numbers of the stored verdict."""
    tone: Tone = "quiet"
    unresolved: bool = False
    """Not compared because the bucket of an engine's histogram is wider than the difference."""

    @property
    def agreeing(self) -> str:
        """The text "2 of 2"; empty if not applicable."""
        return f"{self.agree[0]} of {self.agree[1]}" if self.agree else ""

    @property
    def instances(self) -> str:
        """The text "6 vs 6"; empty if not counted."""
        counts = (self.frozen.baseline_instances, self.frozen.candidate_instances)
        return f"{counts[0]} vs {counts[1]}" if None not in counts else ""

    @property
    def trend(self) -> str:
        """The key of the trend chart of the same metric."""
        return TREND_KEYS.get(self.key, self.key)

    @property
    def red(self) -> bool:
        """Whether the row drives a ROLL BACK; nothing else is red."""
        return self.drives and not self.caution and self.label == REGRESSED


def build_evidence_rows(evidence: Any, *, verdict: str = "") -> list[EvidenceRow]:
    """All rows of the evidence; rows that drive the verdict come first, the others keep their
    stored order."""
    changes = [change for change in read_changes(evidence) if change.metric]
    several = len({change.region for change in changes if change.region}) > 1
    rows = [_row(change, several, verdict) for change in changes]
    return sorted(rows, key=lambda row: (not row.judged, not row.drives))


def _row(change: Change, several_regions: bool, verdict: str) -> EvidenceRow:
    detail = change.named.detail or change.unit
    if several_regions and change.region:
        detail = f"{detail}, {change.region}"
    judged, drives = change.judged, change.drives and change.judged
    caution = change.regressed and not (drives and change.hard and verdict != WATCH)
    tone: Tone = "open" if change.label == NO_ANSWER or not judged else "quiet"
    if change.regressed and judged:
        tone = "watch" if caution else "rollback"
    interval = _interval(change, tone) if change.unit != "share" and not change.bounded else None
    agree = interval and change.strata and change.strata_agreeing is not None
    return EvidenceRow(
        key=change.metric,
        title=change.named.title,
        detail=detail,
        baseline=change.baseline_said,
        candidate=change.candidate_said,
        change=change.change_said,
        spread=change.range_said or change.affected_said,
        label=change.label if judged else MUTED if change.muted else NOT_JUDGED,
        judged=judged,
        drives=drives,
        caution=caution,
        matched="" if change.matched_minutes is None else numbers.number(change.matched_minutes),
        window=change.window_said,
        excluded=change.excluded_said,
        agree=(change.strata_agreeing or 0, change.strata) if agree else None,
        frozen=change,
        since=change.since if change.regressed else None,
        onset=change.onset if change.regressed else None,
        effect=change.effect_said,
        interval=interval,
        note="" if interval else _note(change),
        follows=find_metric(change.explained_by).title if change.explained_by else "",
        causes=change.causes_said,
        tone=tone,
        unresolved=not several_regions and change.reason == "bucket_too_wide",
    )


def _interval(change: Change, tone: Tone) -> PlotInterval | None:
    known = change.log_interval
    return PlotInterval(*known, math.log1p(change.smallest_effect or 0.0), tone) if known else None


def _note(change: Change) -> str:
    if change.baseline is None or change.candidate is None:
        return UNDECIDED.get(change.reason, "nothing to compare yet")
    return f"{change.baseline_said} to {change.candidate_said}"
