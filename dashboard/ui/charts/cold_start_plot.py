"""Cold starts of two versions on one axis: a mark for each start, or a histogram of many starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from dashboard.ui.charts.waterfall import ticks
from dashboard.vocabulary import numbers

MOST_DOTS, BINS = 60, 40
ROW, MIDDLE, TALLEST = 44, 22.0, 34.0
LANES = 5
"""Lines on which marks of similar starts are placed."""


@dataclass(frozen=True)
class StartDot:
    """One start: position in percent, line, and title."""

    x: float
    y: float
    title: str


@dataclass(frozen=True)
class StartColumn:
    """A bin of the histogram; position and width in percent."""

    x: float
    width: float
    y: float
    height: float
    title: str


@dataclass(frozen=True)
class StartLine:
    """The starts of one version; `slot` is its style."""

    name: str
    slot: int
    count: int
    middle: float
    median: str
    dots: list[StartDot]
    columns: list[StartColumn]

    @property
    def flipped(self) -> bool:
        """Whether the label of the median is before its line."""
        return self.middle > 60


@dataclass(frozen=True)
class ColdStartPlot:
    """The drawing; the budget is a position in percent."""

    lines: list[StartLine]
    ticks: list[tuple[float, str]]
    budget: float | None
    row: int = ROW


def build_cold_start_plot(
    versions: Sequence[tuple[str, int, Sequence[tuple[float, str]]]], budget: float | None
) -> ColdStartPlot | None:
    """Draws versions, given as name, slot and starts with their duration and name; None without a
    start."""
    known = [(name, slot, sorted(starts)) for name, slot, starts in versions if starts]
    if not known:
        return None
    most = 1.03 * max(*(starts[-1][0] for _, _, starts in known), budget or 0.0, 0.1)
    return ColdStartPlot(
        lines=[_line(name, slot, starts, most) for name, slot, starts in known],
        ticks=[
            (round(100 * at / most, 2), numbers.duration(at) if at else f"0{numbers.SPACE}s")
            for at in ticks(most, 5)
        ],
        budget=round(100 * budget / most, 2) if budget else None,
    )


def _line(name: str, slot: int, starts: Sequence[tuple[float, str]], most: float) -> StartLine:
    totals = [total for total, _ in starts]
    middle = median(totals)
    few = len(totals) <= MOST_DOTS
    return StartLine(
        name=name,
        slot=slot,
        count=len(totals),
        middle=round(100 * middle / most, 2),
        median=numbers.duration(middle),
        dots=[
            StartDot(
                round(100 * total / most, 2),
                MIDDLE + 5 * (place % LANES - LANES // 2),
                f"{title}: {numbers.duration(total)}",
            )
            for place, (total, title) in enumerate(starts)
        ]
        if few
        else [],
        columns=[] if few else _columns(totals, most),
    )


def _columns(totals: Sequence[float], most: float) -> list[StartColumn]:
    counts = [0] * BINS
    for total in totals:
        counts[min(BINS - 1, int(BINS * total / most))] += 1
    wide, tallest = 100 / BINS, max(counts)
    return [
        StartColumn(
            x=round(place * wide + 0.1, 2),
            width=round(wide - 0.2, 2),
            y=round(ROW - 4 - TALLEST * count / tallest, 1),
            height=round(TALLEST * count / tallest, 1),
            title=f"{numbers.plural(count, 'start')} from {numbers.duration(most * place / BINS)} "
            f"to {numbers.duration(most * (place + 1) / BINS)}",
        )
        for place, count in enumerate(counts)
        if count
    ]
