"""A quantile that lies in an engine's first bucket: where the bucket ends is known, and the mean; a
value would be made up."""

from __future__ import annotations

import math
from dataclasses import dataclass

from compilewatch.wire.sketch import Sketch, index_of, lower_bound

from dashboard.fleet.fold.cached_quantiles import CachedSketch

MAX_DIGITS = 6


@dataclass(frozen=True, slots=True)
class QuantileBound:
    """The quantile lies below `bound`; `mean` is that of all calls of the span, of the engine's own
    sum. Both in seconds."""

    bound: float
    mean: float


def find_quantile_bound(sketch: CachedSketch | Sketch, q: float) -> QuantileBound | None:
    """None where the quantile is known, and where nothing was counted."""
    bound, mean = sketch.upper_bound(q), mean_of(sketch)
    return None if bound is None or mean is None else QuantileBound(round_bound(bound), mean)


def mean_of(sketch: CachedSketch | Sketch) -> float | None:
    """Seconds of a call on average."""
    if isinstance(sketch, CachedSketch):
        return sketch.mean
    return sketch.sum / sketch.count if sketch.count else None


def round_bound(bound: float) -> float:
    """The shortest number in the bin that a bound closes: engines have round bounds, and a sketch
    knows them as well as it knows times."""
    lowest = lower_bound(index_of(bound))
    for digits in range(1, MAX_DIGITS):
        step = 10.0 ** (math.floor(math.log10(bound)) + 1 - digits)
        found = float(f"{math.floor(bound / step + 1e-9) * step:.{MAX_DIGITS}g}")
        if found > lowest:
            return found
    return bound
