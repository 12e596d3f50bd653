"""Interval plot: the place of each change and its interval on an axis, with worse to the right.

Percent changes are on a log-ratio axis from -20% to +60%. Changes in points have an axis of their
own with the same limits in points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

from dashboard.regressions.stored_evidence import RATES, Change
from dashboard.ui.charts.axis_ticks import AxisTick
from dashboard.ui.charts.evidence_table import EvidenceRow
from dashboard.vocabulary import numbers

Scale = Literal["percent", "points"]
LOWEST, HIGHEST = -0.2, 0.6
TICKS = (-0.2, 0.0, 0.2, 0.4, 0.6)
LEAST_WIDTH = 0.004
"""Smallest width of a band as a share of the plot."""


@dataclass(frozen=True)
class IntervalPlot:
    """Places of one row in percent of the width. `caps` are the ends of the interval inside the
    plot; a clipped end has none. `arrow` points to a change outside the plot."""

    scale: Scale
    ticks: tuple[AxisTick, ...]
    zero: str
    band: tuple[str, str] | None = None
    line: tuple[str, str] | None = None
    caps: tuple[str, ...] = ()
    mark: str = ""
    arrow: Literal["", "left", "right"] = ""
    css: str = ""
    note: str = ""


@cache
def list_ticks(scale: Scale) -> tuple[AxisTick, ...]:
    """The ticks of an axis; the outer labels stay inside."""
    anchors = ["", *["cen"] * (len(TICKS) - 2), "end"]
    return tuple(
        AxisTick(_percent(_share(_at(tick, scale), scale)), _label(tick, scale), anchor)
        for tick, anchor in zip(TICKS, anchors, strict=True)
    )


def build_interval_plot(row: EvidenceRow) -> IntervalPlot:
    """The plot of a row; a row without a known change has only its axis and a note."""
    change = row.frozen
    scale: Scale = "points" if change.unit == "share" else "percent"
    zero = _percent(_share(0.0, scale))
    css = {"rollback": "rbk", "watch": "wat"}.get(row.tone, "")
    known = _read_points(change) if scale == "points" else _read_ratio(row)
    if known is None or not row.judged:
        plain = list_ticks("percent")
        return IntervalPlot("percent", plain, _percent(_share(0.0, "percent")), note=_note(row))
    centre, low, high, threshold = known
    band = _band(threshold, scale) if threshold else None
    inside = [_share(end, scale) for end in (low, high) if _is_inside(end, scale)]
    ends = tuple(min(1.0, max(0.0, _share(end, scale))) for end in (low, high))
    visible = ends[0] < ends[1] or bool(inside)
    arrow: Literal["", "left", "right"] = ""
    if not _is_inside(centre, scale):
        arrow = "right" if centre > 0 else "left"
    return IntervalPlot(
        scale,
        list_ticks(scale),
        zero,
        band=band,
        line=(_percent(ends[0]), _percent(ends[1])) if visible and low < high else None,
        caps=tuple(map(_percent, inside)) if low < high else (),
        mark="" if arrow else _percent(_share(centre, scale)),
        arrow=arrow,
        css=css,
        note="" if low < high else "no interval",
    )


def _read_ratio(row: EvidenceRow) -> tuple[float, float, float, float] | None:
    """Change, interval and threshold as logarithms of the ratio."""
    interval = row.interval
    if interval is None or row.frozen.unit in RATES:
        return None
    return interval.centre, interval.low, interval.high, interval.band


def _read_points(change: Change) -> tuple[float, float, float, float] | None:
    """Difference, interval and threshold of a share. The stored interval is a multiple of the
    baseline; without one, both ends are the difference."""
    difference = change.difference
    if difference is None or change.bounded or not math.isfinite(difference):
        return None
    base = change.baseline or 0.0
    low = high = difference
    if change.low is not None and change.high is not None and base:
        low, high = base * change.low, base * change.high
    if change.less_is_worse:
        difference, low, high = -difference, -high, -low
    return difference, low, high, change.points or change.smallest_effect or 0.0


def _note(row: EvidenceRow) -> str:
    if not row.judged:
        return "not evaluated"
    if row.frozen.unit in RATES:
        return "count or rate: not on this axis"
    return row.note or "no interval"


def _at(value: float, scale: Scale) -> float:
    return math.log1p(value) if scale == "percent" else value


def _share(place: float, scale: Scale) -> float:
    low, high = _at(LOWEST, scale), _at(HIGHEST, scale)
    return (place - low) / (high - low)


def _is_inside(place: float, scale: Scale) -> bool:
    return 0.0 <= _share(place, scale) <= 1.0


def _band(threshold: float, scale: Scale) -> tuple[str, str]:
    left, right = (min(1.0, max(0.0, _share(end, scale))) for end in (-threshold, threshold))
    width = max(right - left, LEAST_WIDTH)
    return _percent(left), _percent(width)


def _label(tick: float, scale: Scale) -> str:
    if not tick:
        return "0"
    return numbers.points(tick) if scale == "points" else numbers.change(tick)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
