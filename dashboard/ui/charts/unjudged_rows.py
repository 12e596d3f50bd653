"""Observed values of two versions side by side, without an evaluation."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from statistics import median

from dashboard.fleet.metrics.aggregate import CallTotals, Clock, ProcessTotals
from dashboard.fleet.metrics.first_bucket import QuantileBound
from dashboard.fleet.metrics.row_types import StartRow
from dashboard.regressions.stored_evidence import Change
from dashboard.ui.charts import metric_values
from dashboard.ui.charts.evidence_table import NOT_JUDGED, EvidenceRow
from dashboard.ui.charts.metric_values import Metric
from dashboard.vocabulary import numbers
from dashboard.vocabulary.metrics import METRICS

Side = tuple[CallTotals | None, ProcessTotals | None]
DETAILS = {
    "traffic": "calls/s per instance",
    "compile": "per instance",
    **{
        key: METRICS[key].detail
        for key in ("recompiles", "eager", "errors", "stalled", "stalled_time")
    },
}
UNITS = {"recompiles": "per hour", "compile": "s", "cold_start": "s"}
"""Base units of metrics whose charts use another unit."""
METRICS_SHOWN: tuple[Metric, ...] = tuple(
    metric for metric in metric_values.TRENDS if metric is not metric_values.COLD_START
)


def build_observed_rows(
    baseline: Side, candidate: Side, *, clock: Clock, judged: Container[str]
) -> list[EvidenceRow]:
    """One row per metric that was not evaluated and that at least one side has."""
    rows = []
    for metric in METRICS_SHOWN:
        base, cand = (_read_metric(metric, side) for side in (baseline, candidate))
        if metric.key in judged or not (
            any(known is not None for known in (base, cand))
            or _has_bound(metric, baseline, candidate)
        ):
            continue
        detail = DETAILS.get(metric.key, metric.unit)
        if metric is metric_values.THROUGHPUT and any(
            calls and calls.wall for calls, _ in (baseline, candidate)
        ):
            detail = metric_values.ENGINE_THROUGHPUT.unit
        if metric.kind == "duration":
            excluded = describe_excluded_calls(baseline[0], candidate[0])
            detail = (
                "GPU time"
                if clock == "gpu"
                else ", ".join(part for part in ("wall time", excluded) if part)
            )
        rows.append(
            _row(metric, detail, base, cand, metric.below(baseline[0]), metric.below(candidate[0]))
        )
    return rows


def fill_observed_levels(
    rows: Sequence[EvidenceRow], baseline: Side, candidate: Side
) -> list[EvidenceRow]:
    """The evaluated rows; rows that an engine's buckets made incomparable get the observed
    levels."""
    quantiles = {metric.key: metric for metric in (metric_values.P50, metric_values.P99)}
    return [
        _fill_observed_level(row, quantiles[row.key], baseline, candidate)
        if row.unresolved and row.key in quantiles
        else row
        for row in rows
    ]


def _fill_observed_level(row: EvidenceRow, metric: Metric, *sides: Side) -> EvidenceRow:
    base, cand = (
        metric_values.format_metric(metric, metric.read(*side), metric.below(side[0]))
        for side in sides
    )
    before, after = sides
    known = (metric.below(before[0]), metric.below(after[0]))
    observed = _build_change(metric, metric.read(*before), metric.read(*after), *known)
    frozen = replace(
        observed, label=row.label, judged=row.judged, region=row.frozen.region, change=None
    )
    return replace(row, baseline=base, candidate=cand, frozen=frozen, window="", matched="")


def add_stalled_calls(
    rows: Sequence[EvidenceRow], baseline: CallTotals | None, candidate: CallTotals | None
) -> list[EvidenceRow]:
    """The rows, with stalled calls in the row of recompiles, because its hourly rate excludes young
    instances."""
    sides = [side.stalled for side in (baseline, candidate) if side is not None and side.reporting]
    if len(sides) < 2 or not any(sides):
        return list(rows)
    said = f"stalled calls: {numbers.number(sides[0])} and {numbers.number(sides[1])}"
    noted = (
        replace(row, excluded="; ".join(part for part in (row.excluded, said) if part))
        for row in rows
    )
    return [
        new if row.key == metric_values.RECOMPILES.key else row
        for row, new in zip(rows, noted, strict=True)
    ]


def describe_excluded_calls(*sides: CallTotals | None) -> str:
    """Calls that the quantiles of wall time exclude: warm-up calls, and later compiling calls if an
    agent does not report stalled calls."""
    known = [side for side in sides if side is not None]
    if not all(side.callers for side in known):
        return "without calls that compiled: an agent does not report stalled calls"
    left_out = sum(side.warmup for side in known)
    return f"without {numbers.plural(left_out, 'warm-up call')}" if left_out else ""


def _read_metric(metric: Metric, side: Side) -> float | None:
    found = metric.read(*side)
    # A version that started before the window has no compile time in it, which differs from zero.
    return None if metric is metric_values.COMPILE and not found else found


def cold_start_row(starts: Sequence[StartRow], baseline: int, candidate: int) -> list[EvidenceRow]:
    """The median start of both sides, if there were starts."""
    base, cand = (
        [
            start.cold_start
            for start in starts
            if start.version_id == version and start.cold_start is not None
        ]
        for version in (baseline, candidate)
    )
    if not base and not cand:
        return []
    row = _row(
        metric_values.COLD_START,
        "median start",
        median(base) if base else None,
        median(cand) if cand else None,
    )
    return [row]


def _has_bound(metric: Metric, *sides: Side) -> bool:
    """Whether at least a bound of the metric is known."""
    return any(metric.below(calls) for calls, _ in sides)


def _row(
    metric: Metric,
    detail: str,
    base: float | None,
    cand: float | None,
    base_below: QuantileBound | None = None,
    cand_below: QuantileBound | None = None,
) -> EvidenceRow:
    return EvidenceRow(
        key=metric.key,
        title=metric.title,
        detail=detail,
        baseline=metric_values.format_metric(metric, base, base_below),
        candidate=metric_values.format_metric(metric, cand, cand_below),
        change=metric_values.format_difference(metric, cand, base) or "–",
        spread="",
        label=NOT_JUDGED,
        judged=False,
        tone="open",
        frozen=_build_change(metric, base, cand, base_below, cand_below),
    )


def _build_change(
    metric: Metric,
    base: float | None,
    cand: float | None,
    base_below: QuantileBound | None,
    cand_below: QuantileBound | None,
) -> Change:
    """The two values; with a bound only, the bound without a change."""
    unit = {"duration": "s", "share": "share", "size": "bytes"}.get(
        metric.kind, UNITS.get(metric.key, metric.unit)
    )
    relative = base and cand is not None and unit not in ("share", "per hour")
    return Change(
        metric=metric.key,
        unit=unit,
        label=NOT_JUDGED,
        judged=False,
        baseline=base if base is not None or base_below is None else base_below.bound,
        candidate=cand if cand is not None or cand_below is None else cand_below.bound,
        baseline_at_most=base is None and base_below is not None,
        candidate_at_most=cand is None and cand_below is not None,
        change=cand / base - 1 if relative and base and cand is not None else None,
    )
