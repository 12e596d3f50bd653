"""Small multiples: one chart per metric, one line per version, with gaps for missing reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dashboard.fleet.metrics.aggregate import CallGrid, Clock, ProcessGrid
from dashboard.fleet.metrics.first_bucket import QuantileBound
from dashboard.fleet.metrics.row_types import StartRow
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.ui.charts import metric_values
from dashboard.ui.charts.axis_units import choose_scale, round_value
from dashboard.ui.charts.confidence_bands import METRIC_INTERVALS, Interval
from dashboard.ui.charts.lttb import decimate
from dashboard.ui.charts.metric_values import Metric
from dashboard.ui.charts.version_styles import VersionStyle
from dashboard.vocabulary import numbers

Values = list[float | None]
SHADED_SLOTS = (1, 2)
"""Slots with a band: baseline and evaluated version; six bands would hide each other."""
MAX_DOTS = 300


@dataclass(frozen=True)
class Dot:
    """One measurement of a moment, not of a bin."""

    at: float
    value: float


@dataclass(frozen=True)
class TrendLine:
    """One version in one chart: a value or None per bin, or dots. `low` and `high` bound the band;
    empty if no bin needs a band.

    `below` and `mean` apply to bins with a bound instead of a value, the end of an engine's first
    bucket; empty if no bin has a bound."""

    slot: int
    name: str
    values: Values
    dots: list[Dot]
    low: Values = field(default_factory=list)
    high: Values = field(default_factory=list)
    below: Values = field(default_factory=list)
    mean: Values = field(default_factory=list)


@dataclass(frozen=True)
class Trend:
    """One chart. Values are already in `unit`; `conclusion` is its text alternative."""

    key: str
    title: str
    unit: str
    suffix: str
    lines: list[TrendLine]
    conclusion: str
    budget: float | None = None
    note: str = ""
    """The reason why bins with calls have no point."""
    from_zero: bool = True
    """Shares and counts begin at zero; the axis of other metrics fits the values."""
    factor: float = 1.0
    """Values are multiples of the base unit by this factor."""

    @property
    def empty(self) -> bool:
        """True if no version has a value."""
        return not any(
            line.dots or any(value is not None for value in line.values) for line in self.lines
        )


@dataclass(frozen=True)
class TrendMark:
    """An event: a line through every chart, with its name above the charts. With `until`, a band
    from `minute` up to, excluding, `until`: the interval of an onset."""

    minute: int
    kind: str
    text: str
    slot: int = 0
    link: str = ""
    until: int | None = None
    short: str = ""
    """The label in a chart, such as A-418; empty if the text is short."""

    @property
    def last(self) -> int | None:
        """The last minute of a band of more than one minute."""
        return self.until - 1 if self.until is not None and self.until - 1 > self.minute else None


def build_trends(
    *,
    window: TimeBins,
    drawn: Sequence[VersionStyle],
    calls: CallGrid,
    processes: ProcessGrid,
    starts: Iterable[StartRow],
    clock: Clock,
    budget: float | None = None,
) -> list[Trend]:
    """All charts of the model page: user-facing metrics first, then causes and cost."""
    begun = [
        start
        for start in starts
        if start.cold_start is not None and window.first <= start.started_minute < window.last
    ]
    has_items = any(tally.items is not None for bins in calls.values() for tally in bins.values())
    engines = any(tally.wall for bins in calls.values() for tally in bins.values())
    built = []
    for metric in metric_values.TRENDS:
        if metric is metric_values.COLD_START:
            built.append(_cold_starts(drawn, begun, window, budget))
            continue
        shown = metric
        if metric is metric_values.THROUGHPUT:
            shown = (
                metric_values.TRAFFIC
                if not has_items
                else metric_values.ENGINE_THROUGHPUT
                if engines
                else metric
            )
        values = {
            version.id: _values(
                shown, window, calls.get(version.id, {}), processes.get(version.id, {})
            )
            for version in drawn
        }
        spreads = {
            version.id: _read_intervals(shown, window, calls.get(version.id, {}))
            for version in drawn
            if version.slot in SHADED_SLOTS
        }
        bounds = {
            version.id: _bounds(shown, window, calls.get(version.id, {})) for version in drawn
        }
        built.append(_trend(shown, drawn, values, spreads, bounds, window, clock))
    return built


def serialize_trends(
    window: TimeBins,
    drawn: Sequence[VersionStyle],
    trends: Sequence[Trend],
    marks: Sequence[TrendMark],
) -> dict[str, Any]:
    """The data for the browser and the JSON API; times are in ISO 8601."""
    return {
        "window": {
            "first": _at(window.first),
            "last": _at(window.last),
            "step_seconds": window.step * 60,
            "count": window.count,
        },
        "versions": [
            {"slot": version.slot, "name": version.name, "role": version.role} for version in drawn
        ],
        "charts": [_serialize_trend(trend) for trend in trends],
        "marks": [
            {
                "at": _at(mark.minute),
                "kind": mark.kind,
                "text": mark.text,
                "label": mark.short or mark.text,
                "slot": mark.slot,
                "link": mark.link,
                "until": _at(mark.until) if mark.until is not None else None,
            }
            for mark in marks
        ],
    }


def _serialize_trend(trend: Trend) -> dict[str, Any]:
    """The fields of a chart; `asdict` would copy every value."""
    lines = [
        {
            **vars(line),
            "dots": [{"at": _at(dot.at / 60_000), "value": dot.value} for dot in line.dots],
        }
        for line in trend.lines
    ]
    return {**vars(trend), "lines": lines}


def _at(minute: float) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).isoformat()


def _values(
    metric: Metric, window: TimeBins, calls: Mapping[int, Any], processes: Mapping[int, Any]
) -> Values:
    return [metric.read(calls.get(place), processes.get(place)) for place in range(window.count)]


def _bounds(
    metric: Metric, window: TimeBins, calls: Mapping[int, Any]
) -> list[QuantileBound | None]:
    """Bound and mean of each bin whose quantile lies in an engine's first bucket; empty if there is
    none."""
    found = (
        [metric.below(calls.get(place)) for place in range(window.count)]
        if metric.share is not None
        else []
    )
    return found if any(found) else []


def _read_intervals(
    metric: Metric, window: TimeBins, calls: Mapping[int, Any]
) -> list[Interval | None]:
    """The interval of each bin that needs a band; empty if there is none."""
    read = METRIC_INTERVALS.get(metric.key)
    if read is None:
        return []
    found = [read(calls[place]) if place in calls else None for place in range(window.count)]
    return found if any(found) else []


def _trend(
    metric: Metric,
    drawn: Sequence[VersionStyle],
    values: Mapping[int, Values],
    spreads: Mapping[int, list[Interval | None]],
    bounds: Mapping[int, list[QuantileBound | None]],
    window: TimeBins,
    clock: Clock,
) -> Trend:
    known = {id: [one for one in mine if one] for id, mine in bounds.items()}
    ends = (one.bound for mine in known.values() for one in mine)
    scale = choose_scale(
        metric, (*ends, *(value for version in drawn for value in values[version.id])), clock
    )
    unit = (
        f"{scale.unit} in {numbers.format_coarse_duration(window.step * 60)}"
        if metric is metric_values.COMPILE
        else scale.unit
    )
    lines = [
        TrendLine(
            version.slot,
            version.name,
            [round_value(v * scale.factor) if v is not None else None for v in values[version.id]],
            [],
            *_split_interval(spreads.get(version.id, []), scale.factor),
            *_split_bounds(bounds[version.id], scale.factor),
        )
        for version in drawn
    ]
    note = _note([(version.name, known[version.id]) for version in drawn if known[version.id]])
    return Trend(
        metric.key,
        metric.title,
        unit,
        scale.suffix,
        lines,
        _conclude(metric, unit, drawn, values, bounds, note),
        note=note,
        from_zero=metric.kind in ("share", "count"),
        factor=scale.factor,
    )


def _conclude(
    metric: Metric,
    unit: str,
    drawn: Sequence[VersionStyle],
    values: Mapping[int, Values],
    bounds: Mapping[int, list[QuantileBound | None]],
    note: str,
) -> str:
    """The text alternative of a chart: the newest value of each version."""
    latest = {version.id: _find_latest(values[version.id], bounds[version.id]) for version in drawn}
    said = [
        f"{version.name} {metric_values.format_metric(metric, *latest[version.id])}"
        for version in drawn
    ]
    newest = "; ".join(said) or "no version"
    return f"{metric.title}, {unit}. Newest: {newest}. {note}".rstrip()


def _note(known: Sequence[tuple[str, Sequence[QuantileBound]]]) -> str:
    """Note about intervals with a bound only, which have no point."""
    said = [
        f"{name} {numbers.bound(max(one.bound for one in bounds))} in "
        f"{numbers.plural(len(bounds), 'interval')}, newest "
        f"{numbers.mean(bounds[-1].mean)}"
        for name, bounds in known
    ]
    return (
        f"No point where it lies in the engine's first bucket: {'; '.join(said)}." if said else ""
    )


def _split_bounds(bounds: Sequence[QuantileBound | None], factor: float) -> tuple[Values, Values]:
    return [round_value(one.bound * factor) if one else None for one in bounds], [
        round_value(one.mean * factor) if one else None for one in bounds
    ]


def _split_interval(spread: Sequence[Interval | None], factor: float) -> tuple[Values, Values]:
    low, high = (
        [round_value(one[side] * factor, 3) if one else None for one in spread] for side in (0, 1)
    )
    return low, high


def _cold_starts(
    drawn: Sequence[VersionStyle], begun: Sequence[StartRow], window: TimeBins, budget: float | None
) -> Trend:
    lines = []
    said = []
    for version in drawn:
        mine = sorted(
            (s.started_minute, s.cold_start)
            for s in begun
            if s.version_id == version.id and s.cold_start is not None
        )
        dots = [Dot(minute * 60_000, float(f"{seconds:.4g}")) for minute, seconds in mine]
        shown = decimate([(dot.at, dot.value) for dot in dots], MAX_DOTS)
        lines.append(
            TrendLine(
                version.slot, version.name, [None] * window.count, [dots[place] for place in shown]
            )
        )
        said.append(
            f"{version.name} {numbers.plural(len(dots), 'start')}"
            + (f", slowest {numbers.duration(max(d.value for d in dots))}" if dots else "")
        )
    metric = metric_values.COLD_START
    return Trend(
        metric.key,
        metric.title,
        metric.unit,
        "",
        lines,
        f"{metric.title}, {metric.unit}. {'; '.join(said)}.",
        budget,
    )


def format_bin(line: TrendLine, place: int, suffix: str = "") -> str:
    """The value of a bin, or its bound and mean, in the unit of the chart; empty without both."""
    value, below = line.values[place], line.below[place] if line.below else None
    if value is None and below is not None:
        mean = numbers.number(line.mean[place] or 0.0)
        return f"<{numbers.SPACE}{numbers.number(below)}, mean {mean}"
    return f"{numbers.number(value)}{suffix}" if value is not None else ""


def _find_latest(
    values: Values, bounds: Sequence[QuantileBound | None]
) -> tuple[float | None, QuantileBound | None]:
    """Value of the newest bin, or of the bin before it while the newest is still empty; older bins
    do not count as new."""
    newest = list(zip(values, bounds or [None] * len(values), strict=True))[-2:]
    return next(
        ((value, known) for value, known in reversed(newest) if value is not None or known),
        (None, None),
    )
