"""Breakdown of a model's calls by group: p50, p99 and the compiled share of both versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dashboard.fleet.metrics.aggregate import (
    CallTotals,
    Clock,
    all_report_stalls,
    bin_calls,
    sum_call_bins,
)
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.metrics.version_metrics import P50, P99, Metric
from dashboard.fleet.selectors.versions.version_series import CallPoint
from dashboard.ui.charts.axis_units import AxisScale, choose_scale, round_value
from dashboard.ui.charts.metric_values import format_metric
from dashboard.ui.charts.trends import Trend, TrendLine
from dashboard.ui.charts.version_styles import VersionStyle
from dashboard.vocabulary import numbers

MAX_GROUPS = 6
UNKNOWN = "not reported"
COMPILED = Metric(
    "compiled",
    "Compiled calls",
    "% of calls",
    "share",
    lambda calls, _: 1 - calls.eager / calls.known if calls and calls.known else None,
    "down",
)
METRICS = (P50, P99, COMPILED)


@dataclass(frozen=True)
class BreakdownGroup:
    """One group with its three charts."""

    name: str
    calls: int
    charts: list[Trend]


@dataclass(frozen=True)
class Breakdown:
    """The groups with most calls; `rest` are the names of the others, `rest_calls` their calls."""

    groups: list[BreakdownGroup]
    rest: list[str]
    rest_calls: int


def build_breakdown(
    rows: Iterable[tuple[str, CallPoint]],
    window: TimeBins,
    clock: Clock,
    pair: Sequence[VersionStyle],
) -> Breakdown:
    """The groups on common units; a bin without a call stays a gap."""
    rows = [(name or UNKNOWN, point) for name, point in rows]
    calls: dict[str, int] = {}
    for name, point in rows:
        calls[name] = calls.get(name, 0) + point.calls
    ordered = sorted(calls, key=lambda name: (-calls[name], name))
    shown, rest = ordered[:MAX_GROUPS], ordered[MAX_GROUPS:]
    codes = {
        (name, style.id): number
        for number, (name, style) in enumerate((name, style) for name in shown for style in pair)
    }
    points = [
        point._replace(version_id=code)
        for name, point in rows
        if (code := codes.get((name, point.version_id))) is not None
    ]
    grid = bin_calls(points, window, clock, all_report_stalls(points))
    totals = sum_call_bins(grid)
    scales = {
        metric.key: choose_scale(metric, (metric.read(one, None) for one in totals.values()), clock)
        for metric in METRICS
    }
    groups = []
    for name in shown:
        mine = [(style, codes[name, style.id]) for style in pair]
        bins = {style.slot: grid.get(code, {}) for style, code in mine}
        sums = {style.slot: totals.get(code) for style, code in mine}
        charts = [
            _chart(metric, scales[metric.key], pair, bins, sums, window) for metric in METRICS
        ]
        groups.append(BreakdownGroup(name, calls[name], charts))
    return Breakdown(groups, rest, sum(calls[name] for name in rest))


def _chart(
    metric: Metric,
    scale: AxisScale,
    pair: Sequence[VersionStyle],
    bins: Mapping[int, Mapping[int, CallTotals]],
    sums: Mapping[int, CallTotals | None],
    window: TimeBins,
) -> Trend:
    lines = []
    for style in pair:
        values = [metric.read(bins[style.slot].get(place), None) for place in range(window.count)]
        scaled = [
            round_value(value * scale.factor) if value is not None else None for value in values
        ]
        lines.append(TrendLine(style.slot, style.name, scaled, []))
    said = [
        f"{style.name} {format_metric(metric, metric.read(sums[style.slot], None))}"
        for style in pair
    ]
    conclusion = f"{metric.title}, {scale.unit}, whole range: {'; '.join(said)}."
    return Trend(
        metric.key,
        metric.title,
        scale.unit,
        scale.suffix,
        lines,
        conclusion,
        from_zero=metric.kind == "share",
        factor=scale.factor,
    )


def describe_rest(breakdown: Breakdown) -> str:
    """The groups without a chart, as text; empty if there are none."""
    if not breakdown.rest:
        return ""
    named = ", ".join(breakdown.rest[:MAX_GROUPS])
    more = len(breakdown.rest) - MAX_GROUPS
    tail = f" and {more} more" if more > 0 else ""
    calls = f"{numbers.number(breakdown.rest_calls)} calls"
    return f"{numbers.plural(len(breakdown.rest), 'group')} not drawn ({calls}): {named}{tail}"
