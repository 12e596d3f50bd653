"""Latency heat map: calls per time bin and log bucket of each version, from merged sketches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compilewatch.wire.sketch import Sketch, lower_bound

from dashboard.fleet.fold.sketch_columns import merge_packed_by_key
from dashboard.fleet.metrics.aggregate import Clock, all_report_stalls
from dashboard.fleet.metrics.row_types import CallRow
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.ui.charts.axis_units import duration_scale
from dashboard.ui.charts.version_styles import VersionStyle

MAX_ROWS = 32
EDGE_SHARE = 0.0005
"""Share of calls beyond each outer row; the outer rows include them."""

Cells = dict[tuple[int, int], Sketch]


@dataclass(frozen=True)
class MapColumn:
    """The counts of one time bin, upwards from row `row`."""

    place: int
    row: int
    counts: list[int]


@dataclass(frozen=True)
class VersionMap:
    """The columns of one version; a bin without a call is absent."""

    slot: int
    name: str
    calls: int
    columns: list[MapColumn]


@dataclass(frozen=True)
class LatencyMap:
    """The map of all versions on the same rows; `edges` has one more entry than rows."""

    unit: str
    edges: list[float]
    most: int
    versions: list[VersionMap]

    def as_json(self) -> dict[str, Any]:
        """The data that the browser draws."""
        return asdict(self)


def build_latency_map(
    points: Iterable[CallRow], window: TimeBins, clock: Clock, pair: Sequence[VersionStyle]
) -> LatencyMap:
    """Joins the buckets of the sketches to at most 32 rows."""
    cells = _merge_cells(list(points), window, clock)
    low, high = _limits(cells)
    width = -(-(high - low + 1) // MAX_ROWS)
    rows = -(-(high - low + 1) // width)
    joined = {key: _join(sketch, low, width, rows) for key, sketch in cells.items()}
    factor, unit = duration_scale(lower_bound(low + (rows * width) // 2))
    return LatencyMap(
        unit,
        [float(f"{lower_bound(low + row * width) * factor:.4g}") for row in range(rows + 1)],
        max((count for counts in joined.values() for count in counts), default=0),
        [_version(style, joined, cells) for style in pair],
    )


def _merge_cells(points: Sequence[CallRow], window: TimeBins, clock: Clock) -> Cells:
    placed = [(window.bin_of(point.minute), point) for point in points]
    packed = [
        ((point.version_id, place), point.gpu if clock == "gpu" else point.latency)
        for place, point in placed
        if place is not None
    ]
    if clock == "wall" and all_report_stalls(points):
        packed += [
            ((point.version_id, place), point.stalled)
            for place, point in placed
            if place is not None
        ]
    return {key: sketch for key, sketch in merge_packed_by_key(packed).items() if sketch.count}


def _limits(cells: Cells) -> tuple[int, int]:
    """The first and the last bucket of the map."""
    counts: dict[int, int] = {}
    for sketch in cells.values():
        for index, count in sketch.items():
            counts[index] = counts.get(index, 0) + count
    if not counts:
        return 0, 0
    beyond = EDGE_SHARE * sum(counts.values())
    ordered = sorted(counts)
    return _first_beyond(ordered, counts, beyond), _first_beyond(ordered[::-1], counts, beyond)


def _first_beyond(ordered: Sequence[int], counts: Mapping[int, int], beyond: float) -> int:
    passed = 0
    for index in ordered:
        passed += counts[index]
        if passed > beyond:
            return index
    return ordered[-1]


def _join(sketch: Sketch, low: int, width: int, rows: int) -> list[int]:
    counts = [0] * rows
    for index, count in sketch.items():
        counts[min(rows - 1, max(0, (index - low) // width))] += count
    return counts


def _version(
    style: VersionStyle, joined: Mapping[tuple[int, int], list[int]], cells: Cells
) -> VersionMap:
    mine = sorted(place for version, place in joined if version == style.id)
    return VersionMap(
        style.slot,
        style.name,
        sum(cells[style.id, place].count for place in mine),
        [_column(place, joined[style.id, place]) for place in mine],
    )


def _column(place: int, counts: list[int]) -> MapColumn:
    known = [row for row, count in enumerate(counts) if count]
    first, last = (known[0], known[-1]) if known else (0, -1)
    return MapColumn(place, first, counts[first : last + 1])
