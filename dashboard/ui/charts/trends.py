"""Small multiples: one chart a metric, one line a version, gaps where nothing was reported."""

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
"""The baseline and the judged version: shades of six would hide each other."""
MAX_DOTS = 300


@dataclass(frozen=True)
class Dot:
    """One measurement that belongs to a moment, not to a bin."""

    at: float
    value: float


@dataclass(frozen=True)
class TrendLine:
    """One version in one chart: a value or None per bin, or dots. `low` and `high` are shaded;
    empty where every bin is exact enough.

    `below` and `mean` are of bins that have no value but a bound, the end of an engine's first
    bucket; empty where no bin has."""

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
    """One chart. `values` are already in `unit`; `conclusion` is what it says, for people who do
    not see it."""

    key: str
    title: str
    unit: str
    suffix: str
    lines: list[TrendLine]
    conclusion: str
    budget: float | None = None
    note: str = ""
    """Why bins with calls have no point."""

    @property
    def empty(self) -> bool:
        """True where no version has a single value."""
        return not any(
            line.dots or any(value is not None for value in line.values) for line in self.lines
        )


@dataclass(frozen=True)
class TrendMark:
    """Something that happened: drawn as a line through every chart, named once above them."""

    minute: int
    kind: str
    text: str
    slot: int = 0
    link: str = ""


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
    """Every chart of the model page, users first, causes and cost after."""
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
    """What the page hands to the browser, and programs read; times are ISO 8601."""
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
                "slot": mark.slot,
                "link": mark.link,
            }
            for mark in marks
        ],
    }


def _serialize_trend(trend: Trend) -> dict[str, Any]:
    """Its fields as they are; `asdict` would copy every value."""
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
    """What is known of each bin whose quantile lies in an engine's first bucket; empty where none
    does."""
    found = (
        [metric.below(calls.get(place)) for place in range(window.count)]
        if metric.share is not None
        else []
    )
    return found if any(found) else []


def _read_intervals(
    metric: Metric, window: TimeBins, calls: Mapping[int, Any]
) -> list[Interval | None]:
    """The interval of each bin that is worth a shade; empty where none is."""
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
    latest = {version.id: _find_latest(values[version.id], bounds[version.id]) for version in drawn}
    said = [
        f"{version.name} {metric_values.format_metric(metric, *latest[version.id])}"
        for version in drawn
    ]
    note = _note([(version.name, known[version.id]) for version in drawn if known[version.id]])
    conclusion = (
        f"{metric.title}, {unit}. Newest: {'; '.join(said) or 'no version'}. {note}".rstrip()
    )
    return Trend(metric.key, metric.title, unit, scale.suffix, lines, conclusion, note=note)


def _note(known: Sequence[tuple[str, Sequence[QuantileBound]]]) -> str:
    """Of which intervals only a bound is known, and why they have no point."""
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
    """The number of a bin; of one with a bound the bound and the mean, both in the unit of the
    chart; empty where it has neither."""
    value, below = line.values[place], line.below[place] if line.below else None
    if value is None and below is not None:
        mean = numbers.number(line.mean[place] or 0.0)
        return f"<{numbers.SPACE}{numbers.number(below)}, mean {mean}"
    return f"{numbers.number(value)}{suffix}" if value is not None else ""


def _find_latest(
    values: Values, bounds: Sequence[QuantileBound | None]
) -> tuple[float | None, QuantileBound | None]:
    """What the newest bin says, or the one before it while the newest is still empty; older ones
    are not called new."""
    newest = list(zip(values, bounds or [None] * len(values), strict=True))[-2:]
    return next(
        ((value, known) for value, known in reversed(newest) if value is not None or known),
        (None, None),
    )
