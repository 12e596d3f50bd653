"""Round ticks of linear and logarithmic axes."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_TICKS = 5
FACTORS = (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)
LOG_FACTORS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))


@dataclass(frozen=True)
class AxisTick:
    """A tick: its place, its label, and its text anchor."""

    x: str
    label: str
    anchor: str


def fit_ticks(low: float, high: float) -> list[float]:
    """Round ticks whose first and last enclose the values."""
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / MAX_TICKS))
    step = next(power * factor for factor in FACTORS if span / (power * factor) <= MAX_TICKS - 1)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{place * step:.12g}") for place in range(first, max(last, first + 1) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """The finest set of round ticks with at most five inside the limits, both positive; a label at
    the right end would be cut off."""
    if not 0 < low < high:
        return []
    end = low * (high / low) ** 0.94
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    best: list[float] = []
    for factors in LOG_FACTORS:
        inside = [
            tick
            for power in powers
            for factor in factors
            if low <= (tick := float(f"{factor * 10.0**power:.6g}")) <= end
        ]
        if len(best) < len(inside) <= MAX_TICKS:
            best = inside
    return best
