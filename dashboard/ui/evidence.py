"""A stored verdict's evidence as the pages say it; tolerant, because a row keeps the shape of the
day it was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.fleet.metrics.eager_causes import format_causes
from dashboard.regressions.evidence_reader import Change, read_changes
from dashboard.ui import words
from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.reasons import describe_not_compared
from dashboard.vocabulary.severity import order_by_label


@dataclass(frozen=True)
class ChangeRow:
    """One change in words, and what it means for the verdict: `drives` is red, `caution` is not."""

    frozen: Change
    name: str
    drives: bool

    @property
    def metric(self) -> str:
        """The name that programs use."""
        return self.frozen.metric

    @property
    def label(self) -> str:
        """REGRESSED, IMPROVED, NO CHANGE or NOT ENOUGH DATA."""
        return self.frozen.label

    @property
    def caution(self) -> bool:
        """Worse, and no reason to roll back."""
        return self.label == "REGRESSED" and not self.drives

    @property
    def css(self) -> str:
        """The class of a change that is worse."""
        return "drives" if self.drives else "caution" if self.caution else ""

    @property
    def instances(self) -> str:
        """6 and 6: of the candidate and of the baseline."""
        both = (self.frozen.candidate_instances, self.frozen.baseline_instances)
        return "not known" if None in both else f"{both[0]} and {both[1]}"

    @property
    def interval(self) -> str:
        """The interval, or how many instances show it."""
        return self.frozen.range_said or self.frozen.affected_said or "none yet"

    @property
    def causes(self) -> str:
        """Why calls ran eager."""
        return format_causes(self.frozen.causes)


def build_change_rows(evidence: Mapping[str, Any] | None, kind: str = "") -> list[ChangeRow]:
    """The rows that were judged, those that drive the verdict first."""
    rows = [_row(change, kind) for change in read_changes(evidence) if change.judged]
    return sorted(rows, key=lambda row: (not row.drives, order_by_label(row.label)))


def find_metric_row(
    rows: Iterable[ChangeRow], *metrics: str, region: str | None = None
) -> ChangeRow | None:
    """The first row of one of these metrics; where a region is named, of that region or of
    processes, which belong to none."""
    places = None if region is None else (region, "")
    return next(
        (
            row
            for row in rows
            if row.metric in metrics and (places is None or row.frozen.region in places)
        ),
        None,
    )


def list_not_compared(evidence: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Share and reason of calls that stand beside nothing, the largest first, shares under 1 % left
    out."""
    found = (evidence or {}).get("not_compared")
    said = []
    for entry in found if isinstance(found, list) else []:
        share, why = entry.get("share"), str(entry.get("why", ""))
        if isinstance(share, int | float) and share >= 0.01:
            said.append((words.percent(share), f"are not compared: {describe_not_compared(why)}"))
    return said


def _row(change: Change, kind: str) -> ChangeRow:
    return ChangeRow(
        change,
        find_metric(change.metric).name,
        change.drives and kind != "watch",
    )
