"""Cells of a heat strip: each reported slot is drawn once, in its color step; a gap stays a gap."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from dashboard.ui.charts.heatmap import MEASURES, build_heatmap_row, find_measure, list_measures

VALUES = st.lists(st.none() | st.floats(0, 3, allow_nan=False), max_size=60)


@given(VALUES, st.sampled_from(MEASURES))
def test_each_reported_slot_is_in_exactly_one_path_of_its_step(
    values: list[float | None], measure: object
) -> None:
    assert measure in MEASURES
    known = find_measure(MEASURES, measure.key)  # type: ignore[attr-defined]
    strip = build_heatmap_row(values, known)
    drawn: dict[int, int] = {}
    for step, path in strip.paths:
        for start, width in re.findall(r"M(\d+) 0h(\d+)v1h-\2z", path):
            for slot in range(int(start), int(start) + int(width)):
                assert slot not in drawn
                drawn[slot] = step
    assert drawn == {
        slot: known.step(value) for slot, value in enumerate(values) if value is not None
    }
    assert (strip.reported, strip.missing) == (len(drawn), len(values) - len(drawn))


def test_a_bound_belongs_to_the_step_below() -> None:
    assert [MEASURES[0].step(value) for value in (0.5, 1.05, 1.06, 1.2, 1.4, 9.0)] == [
        0,
        0,
        1,
        2,
        3,
        4,
    ]
    assert [MEASURES[1].step(value) for value in (0.0, 0.001, 1.0)] == [0, 1, 4]


def test_the_worst_slot_is_named_and_a_row_without_reports_has_none() -> None:
    assert build_heatmap_row([1.0, None, 1.5, 1.5], MEASURES[0]).worst == 2
    empty = build_heatmap_row([None, None], MEASURES[0])
    assert (empty.paths, empty.worst, empty.missing) == ([], None, 2)


def test_the_metric_that_drives_the_verdict_is_shown_unless_the_address_has_another() -> None:
    measures = list_measures(baseline=True)
    assert measures[0].title == "p50 vs baseline"
    assert find_measure(measures, "", "eager").key == "eager"
    assert find_measure(measures, "compiling", "eager").key == "compiling"
    assert find_measure(measures, "w", "throughput").key == "p50"
