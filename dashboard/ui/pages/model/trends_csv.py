"""The numbers of the trend charts as rows of a CSV file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboard.common import clock
from dashboard.ui.charts.trends import Trend
from dashboard.ui.pages.model.presenter import ModelPage


def tabulate_bins(page: ModelPage, charts: Sequence[Trend]) -> list[list[Any]]:
    """One row per version and bin; charts with a confidence band have the ends of the interval next
    to the value."""
    shaded = (
        {trend.key for trend in charts if any(line.low for line in trend.lines)}
        if len(charts) == 1
        else set()
    )
    bounded = {trend.key for trend in charts if any(line.below for line in trend.lines)}
    heads = [
        head
        for trend in charts
        for head in _heads(trend, shaded=trend.key in shaded, bounded=trend.key in bounded)
    ]
    rows: list[list[Any]] = [["version", "time", *heads]]
    for version in page.facts.drawn:
        lines = [
            next(line for line in trend.lines if line.slot == version.slot) for trend in charts
        ]
        for place, start in enumerate(page.facts.window.starts()):
            cells: list[float | None] = []
            for trend, line in zip(charts, lines, strict=True):
                cells.append(line.values[place])
                if trend.key in shaded:
                    cells += [line.low[place], line.high[place]] if line.low else [None, None]
                if trend.key in bounded:
                    cells += [line.below[place], line.mean[place]] if line.below else [None, None]
            rows.append([version.name, clock.at_minute(start).isoformat(), *cells])
    return rows


def _heads(trend: Trend, *, shaded: bool, bounded: bool) -> list[str]:
    """The columns of one chart; bound and mean apply to bins whose quantile lies in an engine's
    first bucket."""
    heads = [
        f"{trend.title} ({trend.unit})",
        *(
            ("95% CI low, sampling error of calls", "95% CI high, sampling error of calls")
            if shaded
            else ()
        ),
    ]
    return heads + (
        [f"{trend.title} below ({trend.unit})", f"mean ({trend.unit})"] if bounded else []
    )


def tabulate_starts(page: ModelPage) -> list[list[Any]]:
    """One row per start, including starts that the chart omits."""
    window, names = (
        page.facts.window,
        {version.id: version.name for version in page.facts.drawn},
    )
    rows: list[list[Any]] = [["version", "time", "instance", "cold start (s)"]]
    begun = [
        one
        for one in page.facts.instances
        if one.cold_start is not None and one.version_id in names
    ]
    for one in sorted(begun, key=lambda one: one.started_minute):
        if window.first <= one.started_minute < window.last:
            rows.append(
                [
                    names[one.version_id],
                    clock.at_minute(int(one.started_minute)).isoformat(),
                    one.name,
                    one.cold_start,
                ]
            )
    return rows
