"""Single cells of the Fleet table: a value, its change, and the two values and the window that the
change is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.fleet.metrics.first_bucket import QuantileBound, find_quantile_bound
from dashboard.fleet.selectors.versions.fleet_data import VersionData
from dashboard.regressions.stored_evidence import NO_VALUE, Change
from dashboard.ui.evidence import ChangeRow, find_metric_row
from dashboard.vocabulary import numbers

NEAR_BUDGET_RATIO = 0.85


@dataclass(frozen=True)
class Cell:
    """A value in words; `text` is empty where nothing was reported. `css` marks a change that is
    judged to be worse.

    `detail` names what the change is computed from. `value`, `known` and `base` are the numbers: of
    this version, a bound where there is no value, and of the version before in the same window.
    `judged` is the frozen row where the change is the judge's."""

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
    """A cold start, and its bar against the budget where there is one."""

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
    """p50 or p99 of the last minutes, with the change of the same region: the judged one where
    there is one, else what both values differ by now. Next to a bound there is no other change than
    the judge's bound."""
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
    """A share, and how many points it moved from the version before."""
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
    """The median start; the bar is as long as 1.25 budgets, so that the tick stands at 80 of
    100."""
    if value is None:
        return None
    change = _moved(value, base, "s", None)[0] if base is not None else ""
    detail = f"from {numbers.duration(base)}" if base is not None else ""
    width = f"{min(value / budget * 80, 100):.1f}" if budget else ""
    near = bool(budget) and value >= NEAR_BUDGET_RATIO * (budget or 0.0)
    said = numbers.duration(budget) if budget else ""
    return ColdStartCell(numbers.duration(value), change, said, width, near, detail, value, base)


def peak_cell(value: int | None, base: int | None, evidence: Sequence[ChangeRow]) -> Cell:
    """Peak memory, and by how much it moved."""
    if value is None:
        return Cell("")
    row = find_metric_row(evidence, "gpu_memory", "host_memory")
    if not base:
        return Cell(numbers.size(value), value=value)
    change, css = _moved(value, base, "bytes", row)
    return Cell(numbers.size(value), change, css, f"from {numbers.size(base)}", value, base=base)


def _moved(value: float, base: float, unit: str, row: ChangeRow | None) -> tuple[str, str]:
    """The change in the words of every page, and its colour; what did not move in this window is
    not coloured for the judged one."""
    said = numbers.difference(value, base, unit)
    same = not said or said.split(numbers.SPACE)[0] == "0"
    return ("no change", "") if same else (said, row.css if row else "")
