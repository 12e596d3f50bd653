"""Latency heat map: every call is in one cell, rows are shared by the versions, and outliers do not
stretch the rows."""

from __future__ import annotations

from compilewatch.wire.sketch import Sketch

from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.selectors.versions.version_series import CallPoint
from dashboard.ui.charts.latency_map import MAX_ROWS, LatencyMap, build_latency_map
from dashboard.ui.charts.version_styles import VersionStyle

WINDOW = TimeBins(0, 12, 4)
PAIR = [VersionStyle(7, "old", 1), VersionStyle(8, "new", 2)]


def point(version: int, minute: int, *seconds: float) -> CallPoint:
    packed = Sketch.of(seconds).pack()
    return CallPoint(
        version,
        1,
        "",
        minute,
        len(seconds),
        0,
        None,
        0,
        0,
        len(seconds),
        sum(seconds),
        0,
        packed,
        None,
    )


def counted(found: LatencyMap) -> list[int]:
    return [sum(sum(column.counts) for column in version.columns) for version in found.versions]


def test_every_call_is_in_one_cell_of_its_bin() -> None:
    points = [point(7, 0, 0.01, 0.02), point(7, 3, 0.02), point(7, 9, 0.04), point(8, 9, 0.5)]
    found = build_latency_map(points, WINDOW, "wall", PAIR)
    assert counted(found) == [4, 1]
    assert [column.place for column in found.versions[0].columns] == [0, 2], "a gap stays a gap"
    assert found.unit == "ms" and len(found.edges) <= MAX_ROWS + 1
    assert found.edges == sorted(found.edges)


def test_an_outlier_is_counted_in_the_outer_row() -> None:
    usual = [0.01 * 1.001**number for number in range(300)]
    points = [point(7, 0, *usual) for _ in range(12)] + [point(7, 0, 1e-6, 1e5)]
    found = build_latency_map(points, WINDOW, "wall", PAIR)
    assert counted(found) == [12 * 300 + 2, 0]
    assert found.edges[-1] < 20 and found.edges[0] > 8


def test_without_a_timed_call_the_map_is_empty() -> None:
    found = build_latency_map([], WINDOW, "gpu", PAIR)
    assert counted(found) == [0, 0] and found.most == 0
