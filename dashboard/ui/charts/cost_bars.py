"""Stacked bars of GPU-hours by day, in percent of the width; rendered on the server."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.common import clock
from dashboard.ui.charts.axis_ticks import fit_ticks
from dashboard.vocabulary import numbers

TOP, BOTTOM, HEIGHT = 16.0, 212.0, 232
CSS = ("st-1", "h-2", "st-3")
BAR_SHARE = 0.72


@dataclass(frozen=True)
class CostBar:
    """One day: parts as (CSS class, y, height), and a label above the bar or below the axis."""

    x: str
    middle: str
    width: str
    parts: list[tuple[str, str, str]]
    total: str
    total_y: str
    day: str
    title: str


@dataclass(frozen=True)
class CostBars:
    """The drawing and its accessible name."""

    bars: list[CostBar]
    ticks: list[tuple[str, str]]
    sentence: str


def build_cost_bars(
    days: Sequence[int], by_class: Mapping[str, Mapping[int, float]], until: str
) -> CostBars:
    """The bars of consecutive days; the last one is not over, `until` is its time."""
    totals = {day: sum(values.get(day, 0.0) for values in by_class.values()) for day in days}
    ticks = _choose_ticks(max(totals.values(), default=0.0))
    scale, step = (BOTTOM - TOP) / ticks[-1], 100 / max(len(days), 1)
    labelled = {*days[-2:]}
    bars = []
    for place, day in enumerate(days):
        parts, y = [], BOTTOM
        for css, values in zip(CSS, by_class.values(), strict=True):
            height = max(values.get(day, 0.0), 0.0) * scale
            y -= height
            if height > 0:
                parts.append((css, f"{y:.1f}", f"{height:.1f}"))
        text = f"{clock.at_minute(day * 1440):%d %b}".lstrip("0")
        last = place == len(days) - 1
        said = ", ".join(
            f"{name} {numbers.number(values.get(day, 0.0))}" for name, values in by_class.items()
        )
        bars.append(
            CostBar(
                x=f"{place * step + step * (1 - BAR_SHARE) / 2:.2f}",
                middle=f"{(place + 0.5) * step:.2f}",
                width=f"{step * BAR_SHARE:.2f}",
                parts=parts,
                total=numbers.number(totals[day]) if day in labelled and totals[day] else "",
                total_y=f"{y - 5:.1f}",
                day=text if place % 3 == 1 or (last and len(days) < 3) else "",
                title=f"{text}{f', until {until}' if last else ''}: {said} GPU-hours",
            )
        )
    labels = [(f"{BOTTOM - tick * scale:.1f}", numbers.number(tick)) for tick in ticks]
    return CostBars(bars, labels, _sentence(days, totals, until))


def _choose_ticks(highest: float) -> list[float]:
    return fit_ticks(0.0, highest if math.isfinite(highest) and highest > 0 else 1.0)


def _sentence(days: Sequence[int], totals: Mapping[int, float], until: str) -> str:
    if not days:
        return "GPU-hours per day: no day."
    first, last = (clock.at_minute(day * 1440) for day in (days[0], days[-1]))
    most = max(days, key=lambda day: totals[day])
    return (
        "GPU-hours per day of compilations, eager calls and cache misses, "
        f"{first.day} {first:%b} to {last.day} {last:%b}; "
        f"most on {clock.at_minute(most * 1440):%d %b}: "
        f"{numbers.number(totals[most])}; today until {until}: "
        f"{numbers.number(totals[days[-1]])}."
    )
