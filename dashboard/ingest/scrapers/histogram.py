"""Sketch of a Prometheus histogram: the number of values is exact, and their position is known to
one bucket."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from compilewatch.wire.sketch import MAX_INDEX, MIN_INDEX, Sketch, index_of, lower_bound


def build_sketch(bounds: Sequence[float], counts: Sequence[int], total: float) -> Sketch:
    """Spreads the values of each bucket evenly over its bins on the log scale, so that a quantile
    lies in the same bucket as the true one.

    The first bucket begins at zero: its values become an open bin that has only an upper bound.
    `bounds` are upper bounds in order, and the last may be infinite. Values in the infinite bucket
    count at the previous bound, which is a lower limit.
    """
    filled: dict[int, int] = {}
    for place, count in enumerate(counts):
        if count <= 0:
            continue
        upper = bounds[place]
        if math.isinf(upper):  # the next bin: the bound's own bin holds the values below it
            last = first = min(MAX_INDEX, index_of(bounds[place - 1] if place else 1.0) + 1)
        else:
            last = min(MAX_INDEX, index_of(upper))
            first = index_of(bounds[place - 1]) + 1 if place else last
        _spread(filled, max(MIN_INDEX, min(first, last)), last, count)
    if not filled:
        return Sketch()
    first, last = min(filled), max(filled)
    bins = [filled.get(index, 0) for index in range(first, last + 1)]
    summed = total if math.isfinite(total) and total >= 0 else 0.0
    low = 0.0 if counts[0] > 0 else lower_bound(first)
    return Sketch(
        count=sum(bins), sum=summed, min=low, max=lower_bound(last + 1), offset=first, bins=bins
    )


def find_widest_ratio(bounds: Sequence[float]) -> float | None:
    """Maximum error of a quantile as a ratio minus 1, in the widest bucket with two bounds above
    zero."""
    finite = [bound for bound in bounds if 0 < bound < math.inf]
    ratios = [upper / lower for lower, upper in pairwise(finite)]
    return max(ratios) - 1 if ratios else None


def _spread(filled: dict[int, int], first: int, last: int, count: int) -> None:
    """Adds whole values only, each in the middle of its part of the bucket."""
    width = last - first + 1
    given = 0
    for place in range(width):
        upto = (count * (place + 1) + width // 2) // width if place < width - 1 else count
        if upto > given:
            filled[first + place] = filled.get(first + place, 0) + upto - given
            given = upto
