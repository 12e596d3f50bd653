"""Cells of the Fleet table: a value and its change, with the two values and the window of the
change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.fleet.metrics.first_bucket import QuantileBound, find_quantile_bound
from dashboard.fleet.selectors.versions.fleet_data import VersionData
from dashboard.regressions.stored_evidence import NO_VALUE, Change
from dashboard.ui.layout.change_rows import ChangeRow, find_metric_row
from dashboard.vocabulary import numbers

NEAR_BUDGET_RATIO = 0.85


@dataclass(frozen=True)
class Cell:
    """A value as text; `text` is empty without a report. `css` marks a change with a worse verdict.

    `detail` names the reference of the change. `value`, `known` and `base` are numbers: the value
    of this version, a bound if there is no value, and the value of the earlier version in the same
    window. `judged` is the stored row if the change comes from a verdict."""

    text: str
    change: str = ""
    css: str = ""
    detail: str = ""
    value: float | None = None
    known: QuantileBound | None = None
    base: float | None = None
    judged: Change | None = None


@dataclass(frozen=True)
class ColdStartCell:
    """A cold start, with a bar if there is a budget."""

    text: str
    change: str
    budget: str
    width: str
    near: bool
    detail: str = ""
    value: float | None = None
    base: float | None = None


def build_quantile_cell(
    newest: VersionData, quantile: float, evidence: Sequence[ChangeRow], older: VersionData | None
) -> Cell:
    """p50 or p99 of the last minutes with the change of the same region: the evaluated change if
    there is one, else the current difference. A bound has only the evaluated bound as its
    change."""
    value, known = newest.recent.quantile(quantile), find_quantile_bound(newest.recent, quantile)
    if value is None and known is None:
        return Cell("")
    same = older if older and older.region == newest.region else None
    base = same.recent.quantile(quantile) if same else None
    text, mean = (
        (numbers.duration(value), "")
        if value is not None
        else (numbers.bound(known.bound), numbers.mean(known.mean))
        if known
        else ("", "")
    )
    name = f"p{quantile * 100:.0f}"
    row = find_metric_row(evidence, name, f"gpu_{name}", region=newest.region)
    if (
        row is not None
        and row.frozen.change_said != NO_VALUE
        and (value is not None or row.frozen.bounded)
    ):
        frozen = row.frozen
        said = f"{frozen.baseline_said} to {frozen.candidate_said}"
        detail = ", ".join(
            part
            for part in (
                said,
                frozen.window_said,
                "GPU time" if frozen.metric.startswith("gpu_") else "",
            )
            if part
        )
        return Cell(text, frozen.change_said, row.css, detail, value, known, base, frozen)
    if value is None or base is None:
        return Cell(text, mean, value=value, known=known, base=base)
    return Cell(
        text,
        numbers.difference(value, base, "s"),
        detail=f"from {numbers.duration(base)}",
        value=value,
        base=base,
    )


def share_cell(
    value: float | None, base: float | None, evidence: Sequence[ChangeRow], metrics: tuple[str, ...]
) -> Cell:
    """A share with its change from the earlier version in percentage points."""
    if value is None:
        return Cell("")
    row = find_metric_row(evidence, *metrics)
    if base is None:
        return Cell(numbers.percent(value), value=value)
    change, css = _moved(value, base, "share", row)
    return Cell(
        numbers.percent(value), change, css, f"from {numbers.percent(base)}", value, base=base
    )


def cold_cell(
    value: float | None, base: float | None, budget: float | None
) -> ColdStartCell | None:
    """The median start; the bar covers 1.25 budgets, so the budget tick is at 80 of 100."""
    if value is None:
        return None
    change = _moved(value, base, "s", None)[0] if base is not None else ""
    detail = f"from {numbers.duration(base)}" if base is not None else ""
    width = f"{min(value / budget * 80, 100):.1f}" if budget else ""
    near = bool(budget) and value >= NEAR_BUDGET_RATIO * (budget or 0.0)
    said = numbers.duration(budget) if budget else ""
    return ColdStartCell(numbers.duration(value), change, said, width, near, detail, value, base)


def peak_cell(value: int | None, base: int | None, evidence: Sequence[ChangeRow]) -> Cell:
    """Peak memory with its change."""
    if value is None:
        return Cell("")
    row = find_metric_row(evidence, "gpu_memory", "host_memory")
    if not base:
        return Cell(numbers.size(value), value=value)
    change, css = _moved(value, base, "bytes", row)
    return Cell(numbers.size(value), change, css, f"from {numbers.size(base)}", value, base=base)


def _moved(value: float, base: float, unit: str, row: ChangeRow | None) -> tuple[str, str]:
    """The change as text with its colour; a value that did not change in this window has no colour,
    regardless of the verdict."""
    said = numbers.difference(value, base, unit)
    same = not said or said.removesuffix("%").split(numbers.SPACE)[0] == "0"
    return ("no change", "") if same else (said, row.css if row else "")
