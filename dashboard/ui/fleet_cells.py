"""Single cells of the Fleet table: a figure, its change against the version before, and whether that change is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.fleet.figures.below import below
from dashboard.fleet.fold.asked import Row
from dashboard.fleet.selectors.fleet_page import VersionFacts
from dashboard.ui import words
from dashboard.ui.evidence import EvidenceRow, metric_row

NEAR_BUDGET = 0.85
_SAME_SHARE = 0.005
_SAME_RATIO = 0.005


@dataclass(frozen=True)
class Cell:
    """A figure in words; `text` is empty where nothing was reported. `css` marks a change that is judged to be worse."""

    text: str
    change: str = ""
    css: str = ""


@dataclass(frozen=True)
class ColdCell:
    """A cold start, and its bar against the budget where there is one."""

    text: str
    change: str
    budget: str
    width: str
    near: bool


def figure_cell(newest: VersionFacts, quantile: float, evidence: Sequence[EvidenceRow], older: VersionFacts | None) -> Cell:
    """p50 or p99 of the last minutes; the judged change where there is one, else what the two versions differ by now."""
    value = newest.recent.quantile(quantile)
    if value is None:
        return _bound_cell(newest.recent, quantile)
    name = f"p{quantile * 100:.0f}"
    row = metric_row(evidence, name, f"gpu_{name}")
    if row is not None and row.raw_change is not None:
        return Cell(words.duration(value), row.change, _css(row))
    base = older.recent.quantile(quantile) if older else None
    return Cell(words.duration(value), words.change(value / base - 1) if base else "")


def _bound_cell(recent: Row, quantile: float) -> Cell:
    """The bound below which the quantile of an engine lies, with the exact mean; empty where nothing was reported."""
    known = below(recent, quantile)
    return Cell("") if known is None else Cell(words.bound(known.bound), words.mean(known.mean))


def share_cell(value: float | None, base: float | None, evidence: Sequence[EvidenceRow], metrics: tuple[str, ...]) -> Cell:
    """A share, and how many points it moved."""
    if value is None:
        return Cell("")
    row = metric_row(evidence, *metrics)
    css = _css(row) if row and row.label == "REGRESSED" else ""
    if base is None:
        return Cell(words.percent(value))
    difference = value - base
    return Cell(words.percent(value), "no change" if abs(difference) < _SAME_SHARE else words.points(difference), css)


def cold_cell(value: float | None, base: float | None, budget: float | None) -> ColdCell | None:
    """The median start; the bar is as long as 1.25 budgets, so that the tick stands at 80 of 100."""
    if value is None:
        return None
    difference = value - base if base is not None else 0.0
    changed = base is not None and abs(difference) >= max(1.0, 0.05 * base)
    change = f"{'+' if difference > 0 else ''}{words.duration(difference)}" if changed else ""
    if not budget:
        return ColdCell(words.duration(value), change, "", "", False)
    width = min(value / budget * 80, 100)
    return ColdCell(words.duration(value), change, words.duration(budget), f"{width:.1f}", value >= NEAR_BUDGET * budget)


def peak_cell(value: int | None, base: int | None, evidence: Sequence[EvidenceRow]) -> Cell:
    """Peak memory, and by how much it moved."""
    if value is None:
        return Cell("")
    row = metric_row(evidence, "gpu_memory", "gpu_peak", "memory", "host_memory")
    css = _css(row) if row and row.label == "REGRESSED" else ""
    if not base:
        return Cell(words.size(value))
    same = abs(value - base) < _SAME_RATIO * base
    return Cell(words.size(value), "no change" if same else words.signed_size(value - base), css)


def _css(row: EvidenceRow) -> str:
    return "drives" if row.drives else "caution" if row.caution else ""
