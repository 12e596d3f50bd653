"""Sparklines: two bands, lines that stop at missing reports, and a flat line that stays flat."""

from dashboard.ui.charts.driving_chart import ChartSeries, choose_span, draw_driving_chart
from dashboard.ui.charts.sparkline import spark_draw


def test_a_missing_bin_interrupts_the_line() -> None:
    spark = spark_draw(
        [(2, {0: (0.01, 0.03), 1: (0.01, 0.03), 4: (0.01, 0.03), 5: (0.01, 0.03)})], 10, []
    )
    assert [line.path.count("M") for line in spark.lines] == [2, 2]


def test_a_single_bin_is_visible() -> None:
    spark = spark_draw([(2, {3: (0.01, 0.03)})], 10, [])
    assert all(line.path.endswith("h1") for line in spark.lines)


def test_noise_is_drawn_with_a_small_amplitude() -> None:
    points = {place: (0.01 * (1 + 0.005 * (place % 2)), 0.03) for place in range(20)}
    spark = spark_draw([(2, points)], 20, [])
    heights = [
        float(step.split()[1])
        for line in spark.lines
        if not line.thin
        for step in line.path[1:].split("L")
    ]
    assert max(heights) - min(heights) < 1


def test_nothing_is_drawn_without_calls() -> None:
    assert spark_draw([], 72, []).lines == []
    empty = [ChartSeries(1, "a", {}), ChartSeries(2, "b", {0: float("inf")})]
    span = choose_span(1000, 1100)
    assert draw_driving_chart(span=span, series=empty, marks=[], zero=False) is None


def test_the_band_surrounds_the_level_of_the_baseline() -> None:
    chart = draw_driving_chart(
        span=choose_span(1000, 1100),
        series=[ChartSeries(1, "a", {0: 14.0, 1: 14.0, 3: 14.2}), ChartSeries(2, "b", {20: 18.4})],
        marks=[],
        zero=False,
        level=14.0,
    )
    assert chart is not None and chart.band is not None and not chart.from_zero
    line_y = float(chart.lines[0][1].split("M")[1].split("L")[0].split()[1])
    assert float(chart.band[0]) < line_y < float(chart.band[0]) + float(chart.band[1])
    assert len(chart.lines) == 1 and len(chart.dots) == 2, "a point between gaps is a dot"


def test_the_line_of_a_new_model_fills_the_width() -> None:
    spark = spark_draw([(2, dict.fromkeys(range(60, 72), (0.01, 0.03)))], 72, [59.5, 10.0])
    assert spark.first == 60 and all(line.path.startswith("M0.0 ") for line in spark.lines)
    assert spark.end is not None and spark.end[1] == "168.0"
    assert [x for x, _ in spark.marks] == ["0.0"], (
        "a deployment long before the line is none of the line's"
    )


def test_two_bins_do_not_fill_the_width() -> None:
    spark = spark_draw([(2, {70: (0.01, 0.03), 71: (0.01, 0.03)})], 72, [])
    assert spark.first == 64 and all(float(line.path[1:].split()[0]) > 140 for line in spark.lines)
