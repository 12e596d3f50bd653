"""Strip plot with one mark per instance, without averaging."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dashboard.regressions.evidence_reader import ARMS, read_dots
from dashboard.ui.charts.axis_ticks import AxisTick, fit_ticks
from dashboard.ui.charts.axis_units import duration_scale, round_value
from dashboard.ui.charts.cohort_labels import format_cohort, shorten_cohorts
from dashboard.vocabulary import numbers

MAX_ROWS = 8
MAX_MARKS = 120
"""Maximum number of marks of one side in one row."""
ROW_HEIGHT, AXIS_HEIGHT = 52, 26


@dataclass(frozen=True)
class StripPoint:
    """One instance in one stratum and bucket; `n` is the amount of data."""

    instance: str
    arm: str
    place: str
    value: float
    n: int


@dataclass
class StripRow:
    """One stratum and bucket: instances of both sides, and the change of their means."""

    place: str
    short: str = ""
    baseline: list[StripPoint] = field(default_factory=list)
    candidate: list[StripPoint] = field(default_factory=list)

    @property
    def weight(self) -> int:
        """The amount of data of the row."""
        return sum(point.n for point in self.baseline + self.candidate)

    @property
    def change(self) -> str:
        """The ratio of the geometric means; informative, not evaluated."""
        base, cand = _mean(self.baseline), _mean(self.candidate)
        return numbers.change(cand / base - 1) if base and cand else "one side only"

    @property
    def counts(self) -> str:
        """The text "3 vs 3 instances"."""
        return f"{len(self.baseline)} vs {numbers.plural(len(self.candidate), 'instance')}"


@dataclass(frozen=True)
class StripMark:
    """One drawn instance, or a mean: its place in percent, its height, and its text."""

    x: str
    y: int
    text: str = ""


@dataclass(frozen=True)
class StripLine:
    """One drawn row: the height of its text, and the marks and mean of each side by slot."""

    row: StripRow
    text_y: int
    sides: list[tuple[int, list[StripMark], StripMark | None]]
    undrawn: int


@dataclass(frozen=True)
class StripDrawing:
    """The plot in percent of the width and pixels of the height."""

    height: int
    lines: list[StripLine]
    ticks: list[AxisTick]

    @property
    def undrawn(self) -> int:
        """Number of instances without a mark."""
        return sum(line.undrawn for line in self.lines)


@dataclass(frozen=True)
class StripPlot:
    """The plot: values in `unit`, rows by amount of data; `left_out` counts rows that only the
    table has."""

    title: str
    unit: str
    factor: float
    rows: list[StripRow]
    left_out: int
    shared: str

    @property
    def conclusion(self) -> str:
        """Text alternative of the plot."""
        if not self.rows:
            return f"{self.title}: no instance to show."
        return (
            f"{self.title}, one mark per instance. "
            + "; ".join(f"{row.place}: {row.counts}, {row.change}" for row in self.rows)
            + "."
        )

    def draw(self) -> StripDrawing:
        """Places of the marks; of many instances, an even sample with both extremes."""
        values = [
            point.value * self.factor for row in self.rows for point in row.baseline + row.candidate
        ]
        ticks = fit_ticks(min(values), max(values)) if values else [0.0, 1.0]
        low, span = ticks[0], ticks[-1] - ticks[0]

        def place(value: float) -> str:
            return f"{100 * (value * self.factor - low) / span:.2f}%"

        lines = []
        for number, row in enumerate(self.rows):
            top, sides, undrawn = number * ROW_HEIGHT, [], 0
            for slot, arm, below in ((1, row.baseline, 28), (2, row.candidate, 41)):
                shown = _sample(arm, MAX_MARKS)
                undrawn += len(arm) - len(shown)
                marks = [
                    StripMark(place(one.value), top + below, self._text(one, row)) for one in shown
                ]
                mean = _mean(arm)
                middle = StripMark(place(mean), top + below) if mean else None
                sides.append((slot, marks, middle))
            lines.append(StripLine(row, top + 14, sides, undrawn))
        anchors = ["", *["cen"] * (len(ticks) - 2), "end"]
        units = ["", *[""] * (len(ticks) - 2), f"{numbers.SPACE}{self.unit}"]
        axis = [
            AxisTick(f"{100 * (tick - low) / span:.2f}%", f"{numbers.number(tick)}{unit}", anchor)
            for tick, anchor, unit in zip(ticks, anchors, units, strict=True)
        ]
        return StripDrawing(len(self.rows) * ROW_HEIGHT + AXIS_HEIGHT, lines, axis)

    def _text(self, point: StripPoint, row: StripRow) -> str:
        value = numbers.number(point.value * self.factor)
        return f"{point.instance}: {value}{numbers.SPACE}{self.unit}, {row.place}"

    def as_json(self) -> dict[str, Any]:
        """The data that the browser draws."""
        return {
            "unit": self.unit,
            "rows": [
                {
                    "place": row.short,
                    "counts": row.counts,
                    "change": row.change,
                    **{arm: self._arm(getattr(row, arm)) for arm in ARMS},
                }
                for row in self.rows
            ],
        }

    def _arm(self, points: list[StripPoint]) -> dict[str, Any]:
        mean = _mean(points)
        return {
            "mean": round_value(mean * self.factor) if mean else None,
            "values": [round_value(point.value * self.factor) for point in points],
            "names": [point.instance for point in points],
        }


def points_from_evidence(evidence: Any, metric: str) -> tuple[list[StripPoint], int]:
    """The stored points of an evaluated level, and the number of omitted points."""
    dots, left_out = read_dots(evidence, metric)
    return [
        StripPoint(dot.instance, dot.arm, format_cohort(dot.stratum, dot.bucket), dot.value, dot.n)
        for dot in dots
    ], left_out


def build_strip_plot(title: str, points: Iterable[StripPoint]) -> StripPlot:
    """Rows of the positive points, most data first."""
    rows: dict[str, StripRow] = {}
    for point in points:
        if point.value > 0:
            row = rows.setdefault(point.place, StripRow(point.place))
            (row.baseline if point.arm == "baseline" else row.candidate).append(point)
    ordered = sorted(rows.values(), key=lambda row: (-row.weight, row.place))
    top = max(
        (point.value for row in ordered for point in row.baseline + row.candidate), default=0.0
    )
    factor, unit = duration_scale(top)
    short, shared = shorten_cohorts(row.place for row in ordered[:MAX_ROWS])
    for row in ordered[:MAX_ROWS]:
        row.short = short[row.place]
    return StripPlot(
        title, unit, factor, ordered[:MAX_ROWS], max(0, len(ordered) - MAX_ROWS), shared
    )


def _sample(points: list[StripPoint], most: int) -> list[StripPoint]:
    ordered = sorted(points, key=lambda point: point.value)
    if len(ordered) <= most:
        return ordered
    return [ordered[place * (len(ordered) - 1) // (most - 1)] for place in range(most)]


def _mean(points: list[StripPoint]) -> float | None:
    return (
        math.exp(math.fsum(math.log(point.value) for point in points) / len(points))
        if points
        else None
    )
