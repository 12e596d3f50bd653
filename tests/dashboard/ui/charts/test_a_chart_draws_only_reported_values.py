"""Charts: minutes without a report are gaps, neither zero nor interpolated; reported values are
added exactly."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.fleet.metrics.aggregate import bin_calls, bin_processes, choose_clock
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.ui.charts.trends import Trend, build_trends
from dashboard.ui.charts.version_styles import VersionStyle
from tests.dashboard.ui.charts.rows import A, B, calls, process

WINDOW = TimeBins(1000, 1010, 2)
DRAWN = [VersionStyle(B, "new", 2), VersionStyle(A, "old", 1)]


def built(call_rows: list[Any], process_rows: list[Any], **changed: Any) -> dict[str, Trend]:
    clock = choose_clock(call_rows)
    trends = build_trends(
        window=WINDOW,
        drawn=DRAWN,
        calls=bin_calls(call_rows, WINDOW, clock),
        processes=bin_processes(process_rows, WINDOW),
        starts=changed.pop("starts", []),
        clock=clock,
        **changed,
    )
    return {trend.key: trend for trend in trends}


def line(trend: Trend, slot: int) -> list[float | None]:
    return next(line.values for line in trend.lines if line.slot == slot)


def test_a_bin_without_a_report_is_a_gap_in_every_chart() -> None:
    trends = built([calls(1000), calls(1008)], [process(1000), process(1008)])
    for key in ("p50", "p99", "traffic", "eager", "recompiles", "errors", "compile"):
        values = line(trends[key], 1)
        assert [value is None for value in values] == [False, True, True, True, False], key
        assert line(trends[key], 2) == [None] * 5, key


def test_a_bin_merges_the_sketches_of_its_minutes_cohorts_and_buckets() -> None:
    rows = [
        calls(1000, [0.010] * 90),
        calls(1001, [0.100] * 10, stratum_id=8),
        calls(1001, [0.010] * 100, bucket="2^9"),
    ]
    values = built(rows, [])["p99"]
    assert line(values, 1)[0] == pytest.approx(100.0, rel=0.03) and values.unit == "ms, wall time"
    assert line(built(rows, [])["p50"], 1)[0] == pytest.approx(10.0, rel=0.03)


def test_the_eager_share_is_unknown_if_no_call_was_classified() -> None:
    rows = [calls(1000, known=0), calls(1002, eager=10), calls(1004)]
    assert line(built(rows, [])["eager"], 1) == [None, 20.0, 0.0, None, None]


def test_the_eager_share_is_relative_to_sampled_calls() -> None:
    assert line(built([calls(1000, known=5, eager=4)], [])["eager"], 1)[0] == 80.0


def test_a_cache_without_lookups_has_no_hit_rate() -> None:
    rows = [process(1000), process(1002, hit_seconds=3.0, miss_seconds=1.0)]
    assert line(built([], rows)["cache"], 1) == [None, 75.0, None, None, None]


def test_compile_seconds_are_per_instance_across_all_gpu_types_of_a_minute() -> None:
    rows = [
        process(1000, compile_seconds=30.0),
        process(1000, compile_seconds=10.0),
        process(1001, compile_seconds=4.0),
    ]
    assert line(built([], rows)["compile"], 1)[0] == 11.0


def test_recompiles_are_per_hour_per_instance() -> None:
    assert line(built([], [process(1000, recompiles=1)])["recompiles"], 1)[0] == 30.0


def test_throughput_is_drawn_only_if_items_are_reported() -> None:
    assert "throughput" not in built([calls(1000)], [process(1000)])
    values = line(built([calls(1000, [0.5] * 50, items=100.0)], [])["throughput"], 1)
    assert values[0] == pytest.approx(4.0) and values[1] is None


def test_memory_is_that_of_the_highest_instance_and_empty_without_a_gpu() -> None:
    trends = built(
        [], [process(1000, gpu_peak=None, host_rss=3 << 30), process(1001, host_rss=4 << 30)]
    )
    assert trends["gpu_memory"].empty and line(trends["host_memory"], 1)[0] == 4.0


def test_gpu_and_wall_time_are_never_mixed() -> None:
    sampled = calls(1000, version=A, gpu_count=20, gpu=calls(0, [0.002] * 20).latency)
    assert choose_clock([sampled]) == "gpu"
    assert choose_clock([sampled, calls(1000, version=B)]) == "wall"
    assert built([sampled], [])["p50"].unit == "ms, GPU time"


def test_the_text_for_screen_readers_gives_a_value_only_for_versions_with_recent_data() -> None:
    said = built([calls(1000, version=A), calls(1008, version=B)], [])["p50"].conclusion
    assert said.startswith("p50, ms, wall time.") and "new 10\u00a0ms" in said and "old –" in said


def test_rows_outside_the_time_window_are_not_drawn() -> None:
    assert bin_calls([calls(999), calls(1010)], WINDOW, "wall") == {}
