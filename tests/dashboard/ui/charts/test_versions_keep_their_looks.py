"""Styles of versions: a grey square for the baseline, a blue circle for the candidate, and four
others; equal on all charts and pages."""

from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.ui.charts.version_styles import assign_version_styles


def test_styles_go_to_the_evaluated_version_its_baseline_and_the_four_newest_others() -> None:
    drawn = assign_version_styles(
        judged=3, baseline=2, newest_first=[(id, f"v{id}") for id in range(9, 0, -1)]
    )
    assert [(version.id, version.slot, version.role) for version in drawn] == [
        (3, 2, "judged"), (2, 1, "baseline"), (9, 3, "other"), (8, 4, "other"), (7, 5, "other"), (6, 6, "other"),
    ]  # fmt: skip


def test_a_single_version_has_the_style_of_the_evaluated_one() -> None:
    assert [
        version.slot
        for version in assign_version_styles(judged=1, baseline=None, newest_first=[(1, "a")])
    ] == [2]


def test_bins_of_hours_begin_on_whole_hours() -> None:
    window = TimeBins.ending(125, 120, 60)
    assert (window.first, window.last, window.count) == (60, 180, 2)


def test_bins_of_minutes_end_at_the_requested_minute() -> None:
    window = TimeBins.ending(125, 60, 3)
    assert (
        window.first,
        window.last,
        window.bin_of(124),
        window.bin_of(125),
        window.bin_of(64),
    ) == (65, 125, 19, None, None)
