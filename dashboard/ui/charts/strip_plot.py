"""Strip plot with one mark per instance, without averaging."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dashboard.regressions.evidence_reader import ARMS, read_dots
from dashboard.ui.charts.axis_units import duration_scale, round_value
from dashboard.ui.charts.cohort_labels import format_cohort, shorten_cohorts
from dashboard.vocabulary import numbers

MAX_ROWS = 8


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


def _mean(points: list[StripPoint]) -> float | None:
    return (
        math.exp(math.fsum(math.log(point.value) for point in points) / len(points))
        if points
        else None
    )
