"""Downsampling with largest-triangle-three-buckets, which keeps the first and last point and
outliers."""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, float]


def decimate(points: Sequence[Point], most: int) -> list[int]:
    """The indexes of at most `most` points, ascending; `points` are sorted by their first number.

    Each bucket between the first and the last point keeps the point that forms the largest
    triangle with the previous kept point and the mean of the next bucket (Steinarsson, 2013)."""
    count = len(points)
    if count <= most:
        return list(range(count))
    if most < 3:
        return [0, count - 1][:most]
    # Integers: 38 times a width of 481 / 38 can be below 481 and omit the last point.
    edges = [1 + place * (count - 2) // (most - 2) for place in range(most - 1)] + [count]
    kept = [0]
    for place in range(most - 2):
        follows = points[edges[place + 1] : max(edges[place + 2], edges[place + 1] + 1)]
        mean = (
            sum(x for x, _ in follows) / len(follows),
            sum(y for _, y in follows) / len(follows),
        )
        kept.append(
            max(
                range(edges[place], edges[place + 1]),
                key=lambda i: _area(points[kept[-1]], points[i], mean),
            )
        )
    return [*kept, count - 1]


def _area(a: Point, b: Point, c: Point) -> float:
    return abs((a[0] - c[0]) * (b[1] - a[1]) - (a[0] - b[0]) * (c[1] - a[1]))
