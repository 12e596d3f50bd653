"""Alert quality page: rows of verdicts and outcomes."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.alerts.alert_quality import (
    FALSE_POSITIVE,
    NOT_GRADED,
    NOT_RECOVERED,
    OUTCOME_GRADES,
    TRUE_POSITIVE,
    AlertQuality,
    OutcomeCounts,
    Proportion,
    grade_outcome,
)
from dashboard.alerts.models import AlertOutcome
from dashboard.regressions.models import VerdictKind


@dataclass(frozen=True)
class VerdictRow:
    """One verdict with the grades of its alerts."""

    kind: str
    total: int
    right: int
    false: int
    not_graded: int
    precision: str
    interval: str


@dataclass(frozen=True)
class OutcomeRow:
    """One outcome: number of alerts and the grade that the outcome counts as."""

    label: str
    count: int
    grade: str


def build_verdict_rows(grades: AlertQuality) -> list[VerdictRow]:
    """One row per verdict, ROLL BACK first."""
    return [_row(graded) for graded in grades.graded]


def build_outcome_rows(grades: AlertQuality) -> list[OutcomeRow]:
    """One row per outcome, graded outcomes first; unused outcomes have the count 0."""
    counts = {
        outcome: sum(graded.outcomes[outcome] for graded in grades.graded) for outcome in _labels()
    }
    order = [TRUE_POSITIVE, FALSE_POSITIVE, NOT_GRADED]
    rows = [
        OutcomeRow(label, counts[outcome], grade_outcome(outcome))
        for outcome, label in _labels().items()
    ]
    return sorted(rows, key=lambda row: order.index(row.grade))


def format_share(share: Proportion) -> str:
    """A percentage if enough alerts are graded, else the counts."""
    if share.value is None:
        return "–"
    return (
        _percent(share.value)
        if share.enough
        else f"{share.part} of {share.whole} (too few for a percentage)"
    )


def format_interval(share: Proportion) -> str:
    """The 95% confidence interval; empty without enough graded alerts."""
    if share.interval is None or not share.enough:
        return ""
    low, high = share.interval
    return f"95% CI {_percent(low)} to {_percent(high)}"


def _percent(share: float) -> str:
    """Whole percents: a few hundred alerts do not support more digits."""
    return f"{share * 100:.0f}%"


def _row(graded: OutcomeCounts) -> VerdictRow:
    total = sum(graded.outcomes.values())
    counts = (graded.count(TRUE_POSITIVE), graded.count(FALSE_POSITIVE), graded.count(NOT_GRADED))
    kind = graded.worst if graded.worst in VerdictKind.values else VerdictKind.WATCH
    return VerdictRow(
        kind, total, *counts, format_share(graded.precision), format_interval(graded.precision)
    )


def _labels() -> dict[str, str]:
    labels = {str(value): str(label) for value, label in AlertOutcome.choices}
    return {**labels, NOT_RECOVERED: "Rolled back, not recovered", "": "Still open"}


assert set(OUTCOME_GRADES) <= set(_labels())
