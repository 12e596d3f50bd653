"""Small multiples: one chart a metric, one line a version, gaps where nothing was reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from dashboard.fleet.figures.rows import StartRow
from dashboard.fleet.figures.tally import CallGrid, Clock, ProcessGrid
from dashboard.fleet.figures.window import Window
from dashboard.ui import words
from dashboard.ui.charts import metrics
from dashboard.ui.charts.decimate import decimated
from dashboard.ui.charts.metrics import Metric
from dashboard.ui.charts.roles import Drawn
from dashboard.ui.charts.scales import rounded, scale_for
from dashboard.ui.charts.spreads import SPREADS, Interval

Values = list[float | None]
SHADED = (1, 2)
"""The baseline and the judged version: shades of six would hide each other."""
MOST_DOTS = 300


@dataclass(frozen=True)
class Dot:
    """One measurement that belongs to a moment, not to a bin."""

    at: float
    value: float


@dataclass(frozen=True)
class Line:
    """One version in one chart: a value or None per bin, or dots. `low` and `high` are shaded; empty where every bin is exact enough."""

    slot: int
    name: str
    values: Values
    dots: list[Dot]
    low: Values = field(default_factory=list)
    high: Values = field(default_factory=list)


@dataclass(frozen=True)
class Trend:
    """One chart. `values` are already in `unit`; `conclusion` is what it says, for people who do not see it."""

    key: str
    title: str
    unit: str
    suffix: str
    lines: list[Line]
    conclusion: str
    budget: float | None = None

    @property
    def empty(self) -> bool:
        """True where no version has a single value."""
        return not any(line.dots or any(value is not None for value in line.values) for line in self.lines)


@dataclass(frozen=True)
class Mark:
    """Something that happened: drawn as a line through every chart, named once above them."""

    minute: int
    kind: str
    text: str
    slot: int = 0
    link: str = ""


def trends_built(
    *,
    window: Window,
    drawn: Sequence[Drawn],
    calls: CallGrid,
    processes: ProcessGrid,
    starts: Iterable[StartRow],
    clock: Clock,
    budget: float | None = None,
) -> list[Trend]:
    """Every chart of the model page, users first, causes and cost after."""
    begun = [start for start in starts if start.cold_start is not None and window.first <= start.started_minute < window.last]
    has_items = any(tally.items is not None for bins in calls.values() for tally in bins.values())
    engines = any(tally.wall for bins in calls.values() for tally in bins.values())
    built = []
    for metric in metrics.TRENDS:
        if metric is metrics.COLD_START:
            built.append(_cold_starts(drawn, begun, window, budget))
            continue
        shown = metric
        if metric is metrics.THROUGHPUT:
            shown = metrics.TRAFFIC if not has_items else metrics.ENGINE_THROUGHPUT if engines else metric
        values = {version.id: _values(shown, window, calls.get(version.id, {}), processes.get(version.id, {})) for version in drawn}
        spreads = {version.id: _spreads(shown, window, calls.get(version.id, {})) for version in drawn if version.slot in SHADED}
        built.append(_trend(shown, drawn, values, spreads, window, clock))
    return built


def as_json(window: Window, drawn: Sequence[Drawn], trends: Sequence[Trend], marks: Sequence[Mark]) -> dict[str, Any]:
    """What the page hands to the browser; times in milliseconds since 1970."""
    return {
        "window": {"first": window.first * 60_000, "last": window.last * 60_000, "step": window.step * 60_000, "count": window.count},
        "versions": [{"slot": version.slot, "name": version.name, "role": version.role} for version in drawn],
        "charts": [_plain(trend) for trend in trends],
        "marks": [{**asdict(mark), "at": mark.minute * 60_000} for mark in marks],
    }


def _plain(trend: Trend) -> dict[str, Any]:
    """Its fields as they are; `asdict` would copy every value."""
    lines = [{**vars(line), "dots": [vars(dot) for dot in line.dots]} for line in trend.lines]
    return {**vars(trend), "lines": lines}


def _values(metric: Metric, window: Window, calls: Mapping[int, Any], processes: Mapping[int, Any]) -> Values:
    return [metric.read(calls.get(place), processes.get(place)) for place in range(window.count)]


def _spreads(metric: Metric, window: Window, calls: Mapping[int, Any]) -> list[Interval | None]:
    """The interval of each bin that is worth a shade; empty where none is."""
    read = SPREADS.get(metric.key)
    if read is None:
        return []
    found = [read(calls[place]) if place in calls else None for place in range(window.count)]
    return found if any(found) else []


def _trend(
    metric: Metric,
    drawn: Sequence[Drawn],
    values: Mapping[int, Values],
    spreads: Mapping[int, list[Interval | None]],
    window: Window,
    clock: Clock,
) -> Trend:
    scale = scale_for(metric, (value for version in drawn for value in values[version.id]), clock)
    unit = f"{scale.unit} in {words.coarse(window.step * 60)}" if metric is metrics.COMPILE else scale.unit
    lines = [
        Line(
            version.slot,
            version.name,
            [rounded(v * scale.factor) if v is not None else None for v in values[version.id]],
            [],
            *_ends(spreads.get(version.id, []), scale.factor),
        )
        for version in drawn
    ]
    said = [f"{version.name} {metrics.figure(metric, _latest(values[version.id]))}" for version in drawn]
    return Trend(metric.key, metric.title, unit, scale.suffix, lines, f"{metric.title}, {unit}. Newest: {'; '.join(said) or 'no version'}.")


def _ends(spread: Sequence[Interval | None], factor: float) -> tuple[Values, Values]:
    low, high = ([rounded(one[side] * factor, 3) if one else None for one in spread] for side in (0, 1))
    return low, high


def _cold_starts(drawn: Sequence[Drawn], begun: Sequence[StartRow], window: Window, budget: float | None) -> Trend:
    lines = []
    said = []
    for version in drawn:
        mine = sorted((s.started_minute, s.cold_start) for s in begun if s.version_id == version.id and s.cold_start is not None)
        dots = [Dot(minute * 60_000, float(f"{seconds:.4g}")) for minute, seconds in mine]
        shown = decimated([(dot.at, dot.value) for dot in dots], MOST_DOTS)
        lines.append(Line(version.slot, version.name, [None] * window.count, [dots[place] for place in shown]))
        said.append(
            f"{version.name} {words.plural(len(dots), 'start')}"
            + (f", slowest {words.duration(max(d.value for d in dots))}" if dots else "")
        )
    metric = metrics.COLD_START
    return Trend(metric.key, metric.title, metric.unit, "", lines, f"{metric.title}, {metric.unit}. {'; '.join(said)}.", budget)


def _latest(values: Values) -> float | None:
    """The value of the newest bin, or the one before it while the newest is still empty; older ones are not called new."""
    return next((value for value in reversed(values[-2:]) if value is not None), None)
