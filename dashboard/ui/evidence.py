"""Change rows: the judged metrics of a stored verdict for the Fleet page and the time line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.regressions.evidence_reader import read_changes, read_excluded_calls
from dashboard.regressions.stored_evidence import Change
from dashboard.vocabulary import numbers
from dashboard.vocabulary.reasons import describe_not_compared
from dashboard.vocabulary.severity import WATCH, order_by_label

SMALLEST_SHARE = 0.01


@dataclass(frozen=True)
class ChangeRow:
    """One change in words, and what it means for the verdict: `drives` is red, `caution` is not."""

    frozen: Change
    drives: bool

    @property
    def name(self) -> str:
        """What people call the metric."""
        return self.frozen.named.name

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
        return self.frozen.regressed and not self.drives

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
        return self.frozen.causes_said


def build_change_rows(evidence: Mapping[str, Any] | None, kind: str = "") -> list[ChangeRow]:
    """The rows that were judged, those that drive the verdict first."""
    judged = (change for change in read_changes(evidence) if change.judged)
    rows = [ChangeRow(change, change.drives and kind != WATCH) for change in judged]
    return sorted(rows, key=lambda row: (not row.drives, order_by_label(row.label)))


def find_metric_row(
    rows: Iterable[ChangeRow], *metrics: str, region: str | None = None
) -> ChangeRow | None:
    """The first row of one of these metrics; where a region is named, of that region or of
    processes, which belong to none."""
    found = (row for row in rows if row.metric in metrics)
    return next((row for row in found if region is None or row.frozen.region in (region, "")), None)


def list_not_compared(evidence: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Share and reason of calls that are compared with nothing, the largest first, shares under 1 %
    left out."""
    return [
        (numbers.percent(one.share), f"are not compared: {describe_not_compared(one.reason)}")
        for one in read_excluded_calls(evidence)
        if one.share is not None and one.share >= SMALLEST_SHARE
    ]
