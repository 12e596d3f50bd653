"""Drawing of latency distributions: histogram and cumulative curve of each side as SVG paths.

Steps are as wide as the counted bins, without smoothing. The drawing ends at bins with less than
one call in a thousand; numbers and files include all calls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

from dashboard.ui.charts.axis_ticks import AxisTick, log_ticks
from dashboard.ui.charts.latency_histograms import Curve, Panel
from dashboard.vocabulary import numbers

WIDTH, HEIGHT = 1000, 84
LEAST_SHARE = 0.001
SLOTS = {"baseline": 1, "candidate": 2}


@dataclass(frozen=True)
class CurveDrawing:
    """Paths of one side, and the place of its median in percent; empty if unknown."""

    slot: int
    histogram: str
    cumulative: str
    median: str


@dataclass(frozen=True)
class PanelDrawing:
    """The curves of a panel and its time axis."""

    curves: list[CurveDrawing]
    ticks: list[AxisTick]


def draw_panel(panel: Panel) -> PanelDrawing:
    """Paths in a box of 1000 by 84 that stretches with the panel."""
    low, high = _limits(panel)
    top = max((share for curve in panel.curves for share in curve.shares), default=1.0) or 1.0

    def place(value: float) -> float:
        return math.log(value / low) / math.log(high / low)

    curves = []
    for curve in panel.curves:
        known = curve.p50 is not None and low <= curve.p50 <= high
        inside = [
            (WIDTH * min(1.0, max(0.0, place(edge))) if edge > 0 else 0.0) for edge in curve.edges
        ]
        curves.append(
            CurveDrawing(
                SLOTS[curve.role],
                _histogram(inside, curve, top),
                _cumulative(inside, curve),
                f"{100 * place(curve.p50):.2f}%" if known and curve.p50 else "",
            )
        )
    ticks = log_ticks(low, high)
    return PanelDrawing(
        curves,
        [
            AxisTick(
                f"{100 * place(tick):.2f}%",
                numbers.number(tick) + (f"{numbers.SPACE}{panel.unit}" if last else ""),
                "cen",
            )
            for tick, last in zip(ticks, [*[False] * (len(ticks) - 1), True], strict=False)
        ],
    )


def _limits(panel: Panel) -> tuple[float, float]:
    """The ends of the visible bins."""
    visible = [
        edge
        for curve in panel.curves
        for place, share in enumerate(curve.shares)
        if share >= LEAST_SHARE
        for edge in curve.edges[place : place + 2]
        if edge > 0
    ]
    if not visible:
        return 1.0, 10.0
    return min(visible) / 1.05, max(visible) * 1.05


def _histogram(places: list[float], curve: Curve, top: float) -> str:
    steps = []
    for place, share in enumerate(curve.shares):
        if places[place + 1] > places[place]:
            y = HEIGHT * (1 - share / top)
            steps.append(f"{places[place]:.1f} {y:.1f}L{places[place + 1]:.1f} {y:.1f}")
    return f"M{places[0]:.1f} {HEIGHT}L{'L'.join(steps)}L{places[-1]:.1f} {HEIGHT}" if steps else ""


def _cumulative(places: list[float], curve: Curve) -> str:
    """Straight lines between the edges, because the distribution within a bin is unknown."""
    sums = [0.0, *accumulate(curve.shares)]
    points = [
        f"{place:.1f} {HEIGHT * (1 - min(1.0, total)):.1f}"
        for place, total in zip(places, sums, strict=False)
    ]
    return f"M{'L'.join(points)}"
