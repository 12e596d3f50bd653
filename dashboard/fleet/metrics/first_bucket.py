"""Quantile bound: the upper bound and mean of a quantile in an engine's first bucket.

The histogram of an engine does not hold a value within its first bucket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from compilewatch.wire.sketch import Sketch, index_of, lower_bound

from dashboard.fleet.fold.cached_quantiles import CachedSketch

MAX_DIGITS = 6


@dataclass(frozen=True, slots=True)
class QuantileBound:
    """Bound of a quantile, in seconds: the quantile is below `bound`. `mean` is the mean of all
    calls in the span."""

    bound: float
    mean: float


def find_quantile_bound(sketch: CachedSketch | Sketch, q: float) -> QuantileBound | None:
    """Return the bound; None if the quantile is known, and without values."""
    bound, mean = sketch.upper_bound(q), mean_of(sketch)
    return None if bound is None or mean is None else QuantileBound(round_bound(bound), mean)


def mean_of(sketch: CachedSketch | Sketch) -> float | None:
    """Return the mean seconds per call; None without values."""
    if isinstance(sketch, CachedSketch):
        return sketch.mean
    return sketch.sum / sketch.count if sketch.count else None


def round_bound(bound: float) -> float:
    """Return the shortest number within the bin that the bound closes.

    Engines use round bounds, and the sketch stores a bound with the accuracy of its bins.
    """
    lowest = lower_bound(index_of(bound))
    for digits in range(1, MAX_DIGITS):
        step = 10.0 ** (math.floor(math.log10(bound)) + 1 - digits)
        found = float(f"{math.floor(bound / step + 1e-9) * step:.{MAX_DIGITS}g}")
        if found > lowest:
            return found
    return bound
