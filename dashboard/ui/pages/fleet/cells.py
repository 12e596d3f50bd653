"""Cells of the Fleet table: a value and its change, with the two values and the window of the
change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.fleet.metrics.first_bucket import QuantileBound, find_quantile_bound
from dashboard.fleet.selectors.versions.fleet_calls import RECENT_MINUTES
from dashboard.fleet.selectors.versions.fleet_data import VersionData
from dashboard.regressions.stored_evidence import NO_VALUE, Change
from dashboard.ui.layout.change_rows import ChangeRow, find_metric_row
from dashboard.vocabulary import numbers

NEAR_BUDGET_RATIO = 0.85
NO_CHANGE = "no change"


@dataclass(frozen=True)
class Cell:
    """A value as text; `text` is empty without a report. `css` marks a change with a worse verdict.

    `pair` are the two values of the change, or the earlier value, and `window` their time. `value`,
    `known` and `base` are numbers: the value of this version, a bound if there is no value, and the
    value of the earlier version in the same window. `judged` is the stored row if the change comes
    from a verdict."""

    text: str
    change: str = ""
    css: str = ""
    pair: str = ""
    window: str = ""
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


def find_judged(evidence: Sequence[ChangeRow], quantile: float, region: str) -> ChangeRow | None:
    """The evaluated change of p50 or p99 with two values; the change of GPU time if only that is
    known."""
    name = f"p{quantile * 100:.0f}"
    row = find_metric_row(evidence, name, f"gpu_{name}", region=region)
    return row if row is not None and row.frozen.change_said != NO_VALUE else None


def build_quantile_cell(
    newest: VersionData, quantile: float, evidence: Sequence[ChangeRow], older: VersionData | None
) -> Cell:
    """p50 or p99 with its change in the same region: the evaluated change if there is one, else
    the difference of the last minutes. A bound has only the evaluated bound as its change."""
    value, known = newest.recent.quantile(quantile), find_quantile_bound(newest.recent, quantile)
    base = _find_base(newest, quantile, older)
    row = find_judged(evidence, quantile, newest.region)
    if row is not None and (known is None or value is not None or row.frozen.bounded):
        return _judged_cell(row, value, known, base)
    recent = format_window(RECENT_MINUTES)
    if value is None:
        return (
            Cell(
                numbers.bound(known.bound),
                numbers.mean(known.mean),
                window=f"first bucket, {recent}",
                known=known,
            )
            if known
            else Cell("")
        )
    text = numbers.duration(value)
    if base is None:
        return Cell(text, window=recent, value=value, known=known, base=base)
    change = numbers.difference(value, base, "s")
    pair = join_pair(numbers.duration(base), text)
    return Cell(text, change, pair=pair, window=recent, value=value, base=base)


def measure_change(
    newest: VersionData, quantile: float, evidence: Sequence[ChangeRow], older: VersionData | None
) -> float | None:
    """The change of the same cell as a ratio, without its texts: for the order of all models."""
    value = newest.recent.quantile(quantile)
    row = find_judged(evidence, quantile, newest.region)
    if row is not None and (
        value is not None or row.frozen.bounded or not find_quantile_bound(newest.recent, quantile)
    ):
        return row.frozen.change
    base = _find_base(newest, quantile, older)
    return value / base - 1 if value is not None and base else None


def _find_base(newest: VersionData, quantile: float, older: VersionData | None) -> float | None:
    same = older is not None and older.region == newest.region
    return older.recent.quantile(quantile) if older is not None and same else None


def _judged_cell(
    row: ChangeRow, value: float | None, known: QuantileBound | None, base: float | None
) -> Cell:
    frozen = row.frozen
    window = ", ".join(
        part
        for part in (
            frozen.window_said,
            "GPU time" if frozen.metric.startswith("gpu_") else "",
        )
        if part
    )
    pair = join_pair(frozen.baseline_said, frozen.candidate_said)
    text = numbers.duration(value) if value is not None else frozen.candidate_said
    return Cell(text, frozen.change_said, row.css, pair, window, value, known, base, frozen)


def join_pair(before: str, after: str) -> str:
    """Two values, the unit once if it is the same: "19.3 → 25.3 ms"."""
    value, _, unit = before.partition(numbers.SPACE)
    same = unit and numbers.SPACE not in unit and after.partition(numbers.SPACE)[2] == unit
    return f"{value if same else before} → {after}"


def format_window(minutes: int) -> str:
    """The newest minutes as text."""
    return f"last{numbers.SPACE}{minutes}{numbers.SPACE}min"


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
        numbers.percent(value),
        change,
        css,
        f"from {numbers.percent(base)}",
        value=value,
        base=base,
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
    said = f"from {numbers.size(base)}"
    return Cell(numbers.size(value), change, css, said, value=value, base=base)


def _moved(value: float, base: float, unit: str, row: ChangeRow | None) -> tuple[str, str]:
    """The change as text with its colour; a value that did not change in this window has no colour,
    regardless of the verdict."""
    said = numbers.difference(value, base, unit)
    same = not said or said.removesuffix("%").split(numbers.SPACE)[0] == "0"
    return (NO_CHANGE, "") if same else (said, row.css if row else "")
