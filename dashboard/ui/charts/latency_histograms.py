"""Overlaid latency distributions of two versions per cohort (stratum and shape bucket), from merged
sketches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from compilewatch.wire.sketch import Sketch, lower_bound

from dashboard.fleet.fold.sketch_columns import merge_packed_by_key
from dashboard.fleet.metrics.aggregate import Clock, all_report_stalls
from dashboard.fleet.metrics.row_types import CallRow
from dashboard.ui.charts.axis_units import duration_scale, round_value
from dashboard.ui.charts.cohort_labels import format_cohort, shorten_cohorts
from dashboard.vocabulary import numbers

MAX_PANELS = 6
MIN_CALLS = 20
MAX_OPEN_SHARE = 0.05
"""Maximum share of calls in an engine's first bucket, whose distribution is unknown; above it, no
curve is drawn."""
MIN_CALLS_IN_MODE = 100
MAX_BINS_JOINED = 8
"""Maximum number of joined bins: 8 bins of 2.2% span 19%."""


@dataclass(frozen=True)
class Curve:
    """Share of calls per bin of equal width on the log scale; `edges` has one more entry than
    `shares`."""

    role: str
    edges: list[float]
    shares: list[float]
    p50: float | None
    p99: float | None
    count: int


@dataclass(frozen=True)
class Panel:
    """One stratum and bucket; curves with too few calls are missing."""

    place: str
    short: str
    unit: str
    curves: list[Curve]
    facts: str

    @property
    def conclusion(self) -> str:
        """Text alternative of the panel."""
        return f"Latency distributions, {self.place}: {self.facts}."


Cells = dict[tuple[int, str], dict[int, Sketch]]


def merge_cells(rows: Iterable[CallRow], clock: Clock) -> Cells:
    """Merged sketches by (stratum, bucket) and version."""
    rows = list(rows)
    packed = [
        ((row.stratum_id, row.bucket, row.version_id), row.gpu if clock == "gpu" else row.latency)
        for row in rows
    ]
    if clock == "wall" and all_report_stalls(rows):
        packed += [((row.stratum_id, row.bucket, row.version_id), row.stalled) for row in rows]
    cells: Cells = {}
    for (stratum, bucket, version), sketch in merge_packed_by_key(packed).items():
        cells.setdefault((stratum, bucket), {})[version] = sketch
    return cells


def build_panels(
    cells: Cells, strata: Mapping[int, str], baseline: int, candidate: int
) -> tuple[list[Panel], list[str]]:
    """Panels, those with both sides and most calls first, and the names of cells that are not
    drawn."""

    def order(item: tuple[tuple[int, str], dict[int, Sketch]]) -> tuple[bool, int]:
        counts = [sketch.count for sketch in item[1].values()]
        return (
            not all(_has_enough_calls(item[1].get(version)) for version in (baseline, candidate)),
            -sum(counts),
        )

    ordered = sorted(cells.items(), key=order)
    panels: list[Panel] = []
    left_out: list[str] = []
    for (stratum, bucket), sides in ordered:
        place = format_cohort(strata.get(stratum, ""), bucket)
        curves = [
            (role, sides[version])
            for role, version in (("baseline", baseline), ("candidate", candidate))
            if _has_enough_calls(sides.get(version))
        ]
        if curves and len(panels) < MAX_PANELS:
            panels.append(_panel(place, curves))
        else:
            left_out.append(place)
    short, _ = shorten_cohorts(panel.place for panel in panels)
    return [replace(panel, short=short[panel.place]) for panel in panels], left_out


def panels_json(panels: Iterable[Panel]) -> list[dict[str, Any]]:
    """The data that the browser draws."""
    return [asdict(panel) for panel in panels]


def _has_enough_calls(sketch: Sketch | None) -> bool:
    return (
        sketch is not None
        and sketch.count - sketch.zero >= MIN_CALLS
        and sketch.upper_bound(MAX_OPEN_SHARE) is None
    )


def _panel(place: str, curves: list[tuple[str, Sketch]]) -> Panel:
    # Both sides share one bin width, so that a smoother curve never results from wider bins.
    width = max(_width(sketch) for _, sketch in curves)
    factor, unit = duration_scale(max(sketch.quantile(0.5) or 0.0 for _, sketch in curves))
    drawn = [_curve(role, sketch, width, factor) for role, sketch in curves]
    said = [f"{numbers.duration(sketch.quantile(0.5) or 0.0)}" for _, sketch in curves]
    facts = f"p50 {' and '.join(said)}" if len(said) == 2 else f"{curves[0][0]} only, p50 {said[0]}"
    return Panel(place, place, unit, drawn, facts)


def _width(sketch: Sketch) -> int:
    """Number of bins to join so that the fullest bin has enough calls to exceed noise."""
    width = 1
    while (
        width < MAX_BINS_JOINED
        and max(_join_bins(sketch, width).values(), default=0) < MIN_CALLS_IN_MODE
    ):
        width *= 2
    return width


def _join_bins(sketch: Sketch, width: int) -> dict[int, int]:
    counts: dict[int, int] = {}
    for index, count in sketch.items():
        counts[index // width] = counts.get(index // width, 0) + count
    return counts


def _curve(role: str, sketch: Sketch, width: int, factor: float) -> Curve:
    counts = _join_bins(sketch, width)
    first, last = min(counts), max(counts)
    edges = [_edge(place * width, factor) for place in range(first, last + 2)]
    shares = [
        float(f"{counts.get(place, 0) / sketch.count:.4g}") for place in range(first, last + 1)
    ]
    p50, p99 = (round_value((sketch.quantile(q) or 0.0) * factor) for q in (0.5, 0.99))
    return Curve(role, edges, shares, p50, p99, sketch.count)


def _edge(index: int, factor: float) -> float:
    return float(f"{lower_bound(index) * factor:.5g}")
