"""Breakdown: the largest groups have charts in common units, the others are named with their
calls."""

from __future__ import annotations

from compilewatch.wire.sketch import Sketch

from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.selectors.versions.version_series import CallPoint
from dashboard.ui.charts.breakdown import MAX_GROUPS, build_breakdown, describe_rest
from dashboard.ui.charts.version_styles import VersionStyle

WINDOW = TimeBins(0, 4, 2)
PAIR = [VersionStyle(7, "old", 1), VersionStyle(8, "new", 2)]


def point(version: int, minute: int, seconds: float, calls: int, eager: int = 0) -> CallPoint:
    packed = Sketch.of([seconds] * calls).pack()
    return CallPoint(
        version,
        1,
        "",
        minute,
        calls,
        0,
        None,
        eager,
        calls,
        calls,
        seconds * calls,
        0,
        packed,
        None,
    )


def test_each_group_has_three_charts_of_both_versions() -> None:
    rows = [("H100", point(7, 0, 0.02, 10)), ("H100", point(8, 3, 0.04, 10, eager=5))]
    (group,) = build_breakdown(rows, WINDOW, "wall", PAIR).groups
    assert (group.name, group.calls) == ("H100", 20)
    assert [chart.key for chart in group.charts] == ["p50", "p99", "compiled"]
    old, new = group.charts[0].lines
    assert old.values[1] is None and new.values[0] is None, "a bin without a call is a gap"
    assert abs((new.values[1] or 0) - 40) < 1
    assert [line.values for line in group.charts[2].lines] == [[100.0, None], [None, 50.0]]


def test_the_groups_beyond_the_limit_are_named_with_their_calls() -> None:
    rows = [(f"gpu-{number}", point(7, 0, 0.02, 20 - number)) for number in range(MAX_GROUPS + 2)]
    found = build_breakdown(rows, WINDOW, "wall", PAIR)
    assert [group.name for group in found.groups] == [f"gpu-{n}" for n in range(MAX_GROUPS)]
    said = describe_rest(found).replace("\u00a0", " ")
    assert said == "2 groups not drawn (27 calls): gpu-6, gpu-7"


def test_a_group_without_a_name_is_not_reported() -> None:
    found = build_breakdown([("", point(7, 0, 0.02, 1))], WINDOW, "wall", PAIR)
    assert [group.name for group in found.groups] == ["not reported"]
    assert describe_rest(found) == ""
