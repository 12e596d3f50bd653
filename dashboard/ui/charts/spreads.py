"""How exact the number of calls makes a quantile or a share: the 95 % interval that a chart shades."""

from __future__ import annotations

import math
from collections.abc import Callable

from compilewatch.wire.sketch import Sketch

from dashboard.fleet.figures.tally import Calls

Z = 1.96
NARROW = 0.02
"""Half a width, relative: what is narrower cannot be seen, and a sketch is exact to 1.1 %."""

Interval = tuple[float, float]


def quantile_interval(sketch: Sketch, q: float) -> Interval | None:
    """Between which values the quantile lies, by the ranks of its neighbours; None where it is exact enough or nothing is known."""
    n = sketch.count
    middle = sketch.quantile(q)
    if not n or middle is None:
        return None
    half = Z * math.sqrt(q * (1 - q) / n)
    low, high = sketch.quantile(max(0.0, q - half)), sketch.quantile(min(1.0, q + half))
    if low is None or high is None or max(high - middle, middle - low) <= NARROW * middle:
        return None
    return min(low, middle), max(high, middle)


def share_interval(hits: int, of: int) -> Interval | None:
    """Wilson's interval of a share; None where it is narrower than a fiftieth of the share and of a percent, and where none or all were
    hits: a shade over a flat zero would look like something that happened."""
    if not of or hits in (0, of):
        return None
    share = hits / of
    centre = (share + Z * Z / (2 * of)) / (1 + Z * Z / of)
    half = Z * math.sqrt(share * (1 - share) / of + Z * Z / (4 * of * of)) / (1 + Z * Z / of)
    low, high = max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
    return None if high - low <= max(NARROW * share, NARROW / 100) else (low, high)


SPREADS: dict[str, Callable[[Calls], Interval | None]] = {
    "p50": lambda calls: quantile_interval(calls.sketch, 0.5),
    "p95": lambda calls: quantile_interval(calls.sketch, 0.95),
    "p99": lambda calls: quantile_interval(calls.sketch, 0.99),
    "eager": lambda calls: share_interval(calls.eager, calls.known),
    "errors": lambda calls: share_interval(calls.errors, calls.told),
}
