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
    """One change as text, with its effect on the verdict: `drives` is drawn red, `caution` is
    not."""

    frozen: Change
    drives: bool

    @property
    def name(self) -> str:
        """Title of the metric."""
        return self.frozen.named.name

    @property
    def metric(self) -> str:
        """Machine name of the metric."""
        return self.frozen.metric

    @property
    def label(self) -> str:
        """REGRESSED, IMPROVED, NO CHANGE or NOT ENOUGH DATA."""
        return self.frozen.label

    @property
    def caution(self) -> bool:
        """True for a regression that is not a reason to roll back."""
        return self.frozen.regressed and not self.drives

    @property
    def css(self) -> str:
        """CSS class of a regression."""
        return "drives" if self.drives else "caution" if self.caution else ""

    @property
    def instances(self) -> str:
        """Number of instances of the candidate and of the baseline, as in "6 vs 6"."""
        both = (self.frozen.candidate_instances, self.frozen.baseline_instances)
        return "unknown" if None in both else f"{both[0]} vs {both[1]}"

    @property
    def interval(self) -> str:
        """The interval, or the number of instances with the change."""
        return self.frozen.range_said or self.frozen.affected_said or "none yet"

    @property
    def causes(self) -> str:
        """Causes of eager calls."""
        return self.frozen.causes_said


def build_change_rows(evidence: Mapping[str, Any] | None, kind: str = "") -> list[ChangeRow]:
    """Evaluated rows, those that drive the verdict first."""
    judged = (change for change in read_changes(evidence) if change.judged)
    rows = [ChangeRow(change, change.drives and kind != WATCH) for change in judged]
    return sorted(rows, key=lambda row: (not row.drives, order_by_label(row.label)))


def find_metric_row(
    rows: Iterable[ChangeRow], *metrics: str, region: str | None = None
) -> ChangeRow | None:
    """The first row of one of these metrics. With a region, only rows of that region or of
    processes, which have no region."""
    found = (row for row in rows if row.metric in metrics)
    return next((row for row in found if region is None or row.frozen.region in (region, "")), None)


def list_not_compared(evidence: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Share and reason of calls that were not compared, largest share first. Shares under 1% are
    omitted."""
    return [
        (numbers.percent(one.share), f"are not compared: {describe_not_compared(one.reason)}")
        for one in read_excluded_calls(evidence)
        if one.share is not None and one.share >= SMALLEST_SHARE
    ]
