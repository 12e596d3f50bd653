"""Buckets: widths of the buckets in which an engine counts call durations. Two levels in one bucket
cannot be distinguished."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

Bounds = tuple[float, ...]
"""Upper bounds of an engine's buckets in seconds, in order; empty if unknown."""
LOG_TOLERANCE = 0.005
"""A level this near to a bound, on the log scale, counts as at the bound."""


def find_bucket(level: float, bounds: Sequence[float]) -> tuple[float, float]:
    """The bucket of a level, both on the log scale. It begins at minus infinity below the first
    bound or if the bounds are unknown."""
    finite = [math.log(bound) for bound in bounds if 0.0 < bound < math.inf]
    place = bisect_left(finite, level - LOG_TOLERANCE)
    lower = finite[place - 1] if place else -math.inf
    return lower, finite[place] if place < len(finite) else math.inf


def separates(base: float, candidate: float, bounds: Sequence[float]) -> bool:
    """True if two levels lie in two buckets, and further apart than either bucket is wide.

    A level in the first or last bucket counts as its one known bound, so the true difference is at
    least the apparent one. Such a bucket adds no width.
    """
    ours, theirs = find_bucket(candidate, bounds), find_bucket(base, bounds)
    widths = [upper - lower for lower, upper in (ours, theirs) if math.isfinite(upper - lower)]
    return ours != theirs and abs(candidate - base) > max(widths, default=0.0)
