"""Histogram converter: turns an exponential histogram of OpenTelemetry into a sketch. Exact unless
its bins are wider than the sketch's bins. Pure code."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from compilewatch.wire.sketch import MAX_INDEX, MIN_INDEX, SCALE, Sketch, lower_bound

MAX_SCALE = 20
"""Finest scale that OpenTelemetry defines."""
MAX_BINS = 8192
"""Maximum number of bins in one histogram, and of parts into which wide bins are divided."""
MAX_OFFSET = 1 << 32


class HistogramError(ValueError):
    """The reason why a point is rejected, as a sentence."""


def convert_histogram(point: Mapping[str, Any]) -> Sketch:
    """The sketch of a point, in seconds. Raises HistogramError."""
    scale, zero = int(point.get("scale", 0)), int(point.get("zeroCount", 0))
    positive = point.get("positive") or {}
    counts, offset = (
        [int(one) for one in positive.get("bucketCounts", ())],
        int(positive.get("offset", 0)),
    )
    parts = 1 << max(0, SCALE - scale)
    if (
        not SCALE - 10 <= scale <= MAX_SCALE
        or len(counts) * parts > MAX_BINS
        or abs(offset) > MAX_OFFSET
    ):
        raise HistogramError(
            f"a histogram of scale {scale} with {len(counts)} bins from {offset} cannot contain "
            "durations"
        )
    if any(int(one) for one in (point.get("negative") or {}).get("bucketCounts", ())):
        raise HistogramError("a duration is below zero")
    sketch = _build_sketch(
        point,
        zero,
        offset,
        counts if scale == SCALE else None,
        Counter(dict(_rescale(scale, offset, counts))),
    )
    problem = sketch.problem()
    if problem is None and int(point.get("count", sketch.count)) != sketch.count:
        problem = f"count is {point['count']}, but the bins contain {sketch.count}"
    if problem is not None:
        raise HistogramError(problem)
    return sketch


def is_exact(point: Mapping[str, Any]) -> bool:
    """True if no bin had to be divided."""
    return int(point.get("scale", 0)) >= SCALE


def _rescale(scale: int, offset: int, counts: list[int]) -> Iterator[tuple[int, int]]:
    """Index and count of each filled bin of the sketch."""
    found = Counter[int]()
    for place, count in enumerate(counts, start=offset):
        if scale >= SCALE:
            found[_clamp_index(place >> (scale - SCALE))] += count
            continue
        # A wider bin covers several bins of the sketch. Its calls are spread evenly; the remainder
        # goes to the lowest.
        parts = 1 << (SCALE - scale)
        each, rest = divmod(count, parts)
        for part in range(parts if each else rest):
            found[_clamp_index(place * parts + part)] += each + (part < rest)
    return ((index, count) for index, count in found.items() if count)


def _clamp_index(index: int) -> int:
    return min(max(index, MIN_INDEX), MAX_INDEX)


def _build_sketch(
    point: Mapping[str, Any], zero: int, offset: int, given: list[int] | None, bins: Counter[int]
) -> Sketch:
    first, last = (min(bins), max(bins)) if bins else (0, -1)
    if given is None or not bins:
        offset, given = first, [bins[index] for index in range(first, last + 1)]
    count = zero + sum(given)
    low = _number(point.get("min"), lower_bound(first) if bins and not zero else 0.0)
    high = _number(point.get("max"), lower_bound(last + 1) if bins else 0.0)
    return Sketch(
        SCALE, count, _number(point.get("sum"), high * sum(given)), low, high, zero, offset, given
    )


def _number(value: Any, otherwise: float) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return otherwise
    return found if math.isfinite(found) else otherwise
