"""How wide the buckets are in which an engine counts how long its calls take: inside one bucket two
levels cannot be distinguished."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

Bounds = tuple[float, ...]
"""The upper bounds of an engine's buckets in seconds, in order; empty where they are not known."""
LOG_TOLERANCE = 0.005
"""A level that is so near a bound on the log scale is at the bound."""


def find_bucket(level: float, bounds: Sequence[float]) -> tuple[float, float]:
    """The bucket in which a level lies, both on the log scale: it begins at minus infinity below
    the first bound, or of unknown bounds."""
    finite = [math.log(bound) for bound in bounds if 0.0 < bound < math.inf]
    place = bisect_left(finite, level - LOG_TOLERANCE)
    lower = finite[place - 1] if place else -math.inf
    return lower, finite[place] if place < len(finite) else math.inf


def separates(base: float, candidate: float, bounds: Sequence[float]) -> bool:
    """Whether two levels lie in two buckets, and further from each other than either of the two is
    wide.

    A level in the first or the last bucket counts as the one bound that is known, so that the
    difference is at least what it seems: such a bucket adds no width."""
    ours, theirs = find_bucket(candidate, bounds), find_bucket(base, bounds)
    widths = [upper - lower for lower, upper in (ours, theirs) if math.isfinite(upper - lower)]
    return ours != theirs and abs(candidate - base) > max(widths, default=0.0)
