"""Forecasts of a rollout on one axis: an interval and a middle for each, with the budget of one
start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.ui.charts.waterfall import ticks
from dashboard.vocabulary import numbers


@dataclass(frozen=True)
class ForecastLine:
    """One forecast; positions in percent, None without enough data."""

    label: str
    text: str
    low: float | None = None
    middle: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ForecastPlot:
    """The drawing; the budget is a position in percent."""

    lines: list[ForecastLine]
    ticks: list[tuple[float, str]]
    budget: float | None


def build_forecast_plot(
    forecasts: Sequence[tuple[str, str, float | None, float | None, float | None]],
    budget: float | None,
) -> ForecastPlot | None:
    """Draws forecasts, given as label, text, low, middle and high in seconds; None if none is
    known."""
    ends = [high for *_, high in forecasts if high is not None]
    if not ends:
        return None
    shown = budget if budget is not None and budget <= 4 * max(ends) else None
    most = 1.03 * max(*ends, shown or 0.0)

    def place(seconds: float | None) -> float | None:
        return None if seconds is None else round(100 * seconds / most, 2)

    return ForecastPlot(
        lines=[
            ForecastLine(label, text, place(low), place(middle), place(high))
            for label, text, low, middle, high in forecasts
        ],
        ticks=[
            (round(100 * at / most, 2), numbers.duration(at) if at else f"0{numbers.SPACE}s")
            for at in ticks(most, 5)
        ],
        budget=place(shown),
    )
