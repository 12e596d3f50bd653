"""Interval plot: percent changes on a log-ratio axis, points on their own axis, clipped intervals
without a cap, and a note where there is no interval."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dashboard.regressions.stored_evidence import Change
from dashboard.ui.charts.evidence_groups import group_evidence
from dashboard.ui.charts.evidence_table import EvidenceRow, PlotInterval
from dashboard.ui.charts.interval_plot import build_interval_plot, list_ticks


def row(key: str = "p50", interval: PlotInterval | None = None, **changed: Any) -> EvidenceRow:
    frozen = Change(key, **changed)
    return EvidenceRow(
        key, key, "", "", "", "", "", "REGRESSED", True, interval=interval, frozen=frozen
    )


def ratio(centre: float, low: float, high: float) -> EvidenceRow:
    places = [math.log1p(value) for value in (centre, low, high)]
    return row(interval=PlotInterval(*places, math.log1p(0.05), "rollback"))


def place(text: str) -> float:
    return float(text.removesuffix("%"))


def test_a_change_of_a_fifth_is_at_its_tick() -> None:
    plot = build_interval_plot(ratio(0.2, 0.0, 0.4))
    ticks = {tick.label: tick.x for tick in list_ticks("percent")}
    assert (plot.mark, plot.line) == (ticks["+20%"], (ticks["0"], ticks["+40%"]))
    assert plot.caps == (ticks["0"], ticks["+40%"]) and not plot.arrow


def test_the_axis_is_logarithmic() -> None:
    x = {tick.label: place(tick.x) for tick in list_ticks("percent")}
    assert x["+40%"] - x["+20%"] < x["+20%"] - x["0"] < x["0"] - x["−20%"]


def test_a_clipped_end_has_no_cap() -> None:
    plot = build_interval_plot(ratio(0.3, 0.1, 2.0))
    assert plot.line is not None and plot.line[1] == "100.00%" and len(plot.caps) == 1


def test_a_change_outside_the_axis_is_an_arrow() -> None:
    assert build_interval_plot(ratio(5.0, 4.0, 6.0)).arrow == "right"
    better = build_interval_plot(ratio(-0.9, -0.95, -0.8))
    assert (better.arrow, better.mark, better.line) == ("left", "", None)


def test_points_have_an_axis_of_their_own() -> None:
    plot = build_interval_plot(
        row("eager", unit="share", baseline=0.1, candidate=0.3, low=1.0, high=3.0, points=0.02)
    )
    assert plot.scale == "points" and plot.zero == "25.00%"
    assert (plot.mark, plot.line) == ("50.00%", ("37.50%", "62.50%"))
    assert plot.band == ("22.50%", "5.00%")


def test_points_without_an_interval_are_a_mark_alone() -> None:
    plot = build_interval_plot(row("eager", unit="share", baseline=0.0, candidate=0.28))
    assert plot.mark and plot.line is None and plot.caps == ()


def test_counts_and_unknown_changes_say_so() -> None:
    count = row("recompiles", unit="per hour", baseline=0.0, candidate=8.0, low=1.0, high=3.0)
    assert build_interval_plot(count).note == "count or rate: not on this axis"
    unknown = row("eager", unit="share", baseline=None, candidate=math.inf)
    assert build_interval_plot(unknown).note == "no interval"
    infinite = row("eager", unit="share", baseline=0.0, candidate=math.inf)
    assert not build_interval_plot(infinite).mark
    assert build_interval_plot(replace(ratio(0.2, 0.1, 0.3), judged=False)).note == "not evaluated"


def test_rows_are_grouped_by_what_they_describe() -> None:
    keys = ("gpu_p50", "host_memory", "eager", "p99", "new_metric")
    groups = group_evidence([row(key) for key in keys])
    found = {group.title: [one.row.key for one in group.rows] for group in groups}
    assert found == {
        "User-facing": ["gpu_p50", "p99"],
        "Cause": ["eager"],
        "Cost": ["host_memory", "new_metric"],
    }
