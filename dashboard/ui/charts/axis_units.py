"""Units of axes, chosen for short tick labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.ui.charts.metric_values import Metric


@dataclass(frozen=True)
class AxisScale:
    """Values are multiplied by `factor`; `unit` is part of the title, `suffix` follows each
    tick."""

    factor: float
    unit: str
    suffix: str = ""


def choose_scale(metric: Metric, values: Iterable[float | None], clock: str = "wall") -> AxisScale:
    """The scale that suits the largest value."""
    known = (value for value in values if value is not None and math.isfinite(value))
    top = max(known, default=0.0)
    if metric.kind == "duration":
        factor, unit = duration_scale(top)
        return AxisScale(factor, f"{unit}, {'GPU time' if clock == 'gpu' else 'wall time'}")
    if metric.kind == "size":
        unit, factor = ("GiB", 2.0**-30) if top >= 2**30 else ("MiB", 2.0**-20)
        return AxisScale(factor, f"{unit}, {metric.unit}")
    if metric.kind == "share":
        return AxisScale(100.0, metric.unit, "%")
    return AxisScale(1.0, metric.unit)


def duration_scale(seconds: float) -> tuple[float, str]:
    """The factor and the unit for durations up to `seconds`."""
    if seconds >= 10:
        return 1.0, "s"
    return (1e3, "ms") if seconds >= 1e-3 else (1e6, "µs")


def round_value(value: float | None, digits: int = 5) -> float | None:
    """Rounds to few digits to keep pages small; None for a value that is missing or infinite."""
    return float(f"{value:.{digits}g}") if value is not None and math.isfinite(value) else None
