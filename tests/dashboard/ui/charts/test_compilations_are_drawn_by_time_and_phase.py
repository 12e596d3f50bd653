"""Bars, icicle and starts: positions in percent, kinds of newer agents, and marks that do not
overlap."""

from __future__ import annotations

import pytest

from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.ui.charts.cold_start_plot import MOST_DOTS, build_cold_start_plot
from dashboard.ui.charts.compilation_bars import MOST_MARKS, build_compilation_bars
from dashboard.ui.charts.forecast_plot import build_forecast_plot
from dashboard.ui.charts.phase_icicle import MOST_GRAPHS, GraphPhases, build_phase_icicle
from dashboard.ui.charts.time_axis import build_time_ticks, choose_step
from dashboard.ui.charts.waterfall import build_steps, build_waterfall

WINDOW = TimeBins(1000, 1010, 1)


def test_a_bar_stacks_its_kinds_and_counts_an_unknown_kind_as_first() -> None:
    bars = build_compilation_bars(
        [(1002, "first"), (1002, "recompile"), (1002, "kind of a newer agent"), (999, "first")],
        WINDOW,
    )
    (bar,) = bars.bars
    assert [part.css for part in bar.parts] == ["f1", "st-1"]
    first, again = bar.parts
    assert first.y + first.height == bars.bottom and again.y + again.height == first.y
    assert first.height == pytest.approx(2 * again.height, abs=0.2)
    assert 20 < bar.x < bar.x + bar.width < 30, "the third of ten minutes"
    assert bars.counts == "2 first compiles, 1 recompile" and bars.unit == "minute"


def test_labels_of_close_marks_are_on_different_lines() -> None:
    marks = [(1004, "first"), (1005, "second"), (1009, "late"), (1009, "later"), (1009, "last")]
    bars = build_compilation_bars([(1002, "first")], WINDOW, [*marks, (2000, "outside")])
    assert len(bars.marks) == MOST_MARKS and bars.rest == 1
    assert bars.marks[0].y != bars.marks[1].y
    assert not bars.marks[0].flipped and bars.marks[2].flipped


def test_levels_are_round_and_reach_the_highest_bar() -> None:
    bars = build_compilation_bars([(1002, "first")] * 27, WINDOW)
    assert [text for _, text in bars.levels] == ["0", "10", "20", "30"]


@pytest.mark.parametrize(("minutes", "step"), [(12, 1), (60, 5), (1440, 120), (600_000, 50_000)])
def test_the_step_gives_at_most_twelve_bins(minutes: int, step: int) -> None:
    assert choose_step(minutes, 12) == step and -(-minutes // step) <= 12


def test_ticks_of_a_day_are_times_that_scripts_convert_and_those_of_a_month_are_dates() -> None:
    hours = build_time_ticks(29_000_000, 29_000_300)
    assert hours and all(tick.at.endswith("+00:00") and ":" in tick.text for tick in hours)
    days = build_time_ticks(29_000_000, 29_043_200)
    assert days and not any(tick.at for tick in days)


def test_cells_of_the_icicle_add_up_and_many_graphs_form_one_cell() -> None:
    graphs = [
        GraphPhases(f"g{number}", "", 10.0, 1, {"dynamo": 2.0, "inductor": 6.0})
        for number in range(MOST_GRAPHS + 5)
    ]
    icicle = build_phase_icicle(graphs)
    assert icicle is not None and icicle.more == 5
    assert [cell.label for cell in icicle.graphs][-1] == "5\u00a0other graphs"
    for cells in (icicle.graphs, icicle.phases):
        assert sum(cell.width for cell in cells) == pytest.approx(100, abs=0.1)
    assert icicle.heads == ["Dynamo", "Inductor", "Compilations, in no phase"]
    assert icicle.rows[0].cells == ["2\u00a0s", "6\u00a0s", "2\u00a0s"]
    assert build_phase_icicle([GraphPhases("g", "", 0.0, 1, {})]) is None


def test_few_starts_are_marks_and_many_are_a_histogram() -> None:
    few = [(40.0 + number / 10, f"h-{number}") for number in range(MOST_DOTS)]
    plot = build_cold_start_plot([("1", 1, few), ("2", 2, [*few, (90.0, "slow")])], 60.0)
    assert plot is not None and plot.budget is not None
    one, two = plot.lines
    assert len(one.dots) == MOST_DOTS and not one.columns
    assert not two.dots and two.count == MOST_DOTS + 1
    assert all(0 <= dot.x <= 100 for dot in one.dots)
    assert all(column.x + column.width <= 100.1 for column in two.columns)
    assert build_cold_start_plot([("1", 1, []), ("2", 2, [])], 60.0) is None


def test_a_forecast_without_enough_starts_is_not_drawn() -> None:
    assert build_forecast_plot([("warm", "not enough data", None, None, None)], 90.0) is None
    plot = build_forecast_plot(
        [("warm", "20 s", 18.0, 20.0, 24.0), ("cold", "not enough", None, None, None)], 900.0
    )
    assert plot is not None and plot.budget is None, "a far budget is not drawn"
    assert plot.lines[1].middle is None and (plot.lines[0].high or 0) <= 100


def test_the_waterfall_is_in_percent_of_the_start_or_of_a_near_budget() -> None:
    steps = build_steps(10.0, [("import torch", 0.0, 4.0), ("compile", 5.0, 5.0)], {"dynamo": 5.0})
    drawing = build_waterfall(10.0, steps, 20.0)
    assert drawing.budget == pytest.approx(98.0, abs=0.1)
    assert drawing.total == pytest.approx(49.0, abs=0.1)
    assert [bar.name for bar in drawing.bars] == ["Import of torch", "Dynamo", "unaccounted"]
    assert build_waterfall(10.0, steps, 90.0).budget is None
