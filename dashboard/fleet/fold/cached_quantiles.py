"""Quantile cache: sketches in columns that answer each question for all rows at once.

A page asks for the p99 of every bin: the first bin computes the answer, the others read the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np

from dashboard.fleet.fold.sketch_columns import SketchColumns, build_sketch_columns, merge_packed

T = TypeVar("T")
Question = Callable[[SketchColumns], Sequence[T]]
"""Function with one answer per row. The cache compares functions by identity, so callers must reuse
the same function."""


@dataclass(frozen=True, slots=True, eq=False)
class QuantileCache:
    """Sketches as columns, with the answers computed so far."""

    columns: SketchColumns
    answers: dict[Any, Sequence[Any]] = field(default_factory=dict)

    def rows(self) -> list[CachedSketch]:
        """Return each sketch as a row of the cache."""
        return [CachedSketch(self, place) for place in range(len(self.columns))]


@dataclass(frozen=True, slots=True, eq=False)
class CachedSketch:
    """One sketch of a cache, by its row number."""

    among: QuantileCache
    place: int

    def answer(self, question: Question[T]) -> T:
        """Return the answer for this sketch; compute it for all rows first if needed."""
        known = self.among.answers.get(question)
        if known is None:
            known = self.among.answers[question] = question(self.among.columns)
        return cast(T, known[self.place])

    def quantile(self, q: float) -> float | None:
        """Return the quantile, as `Sketch.quantile` does."""
        return self.answer(_quantile(q))

    def upper_bound(self, q: float) -> float | None:
        """Return the upper bound, as `Sketch.upper_bound` does."""
        return self.answer(_upper_bound(q))

    @property
    def mean(self) -> float | None:
        """Mean value in seconds; None without values."""
        return self.answer(SketchColumns.means)


def merge_packed_groups(
    groups: Iterable[Iterable[bytes | memoryview[int] | None]],
) -> list[CachedSketch]:
    """Merge packed sketches into one sketch per group; a group without packed sketches gives an
    empty sketch."""
    packed: list[bytes | memoryview[int]] = []
    sizes = []
    for group in groups:
        before = len(packed)
        packed.extend(filter(None, group))
        sizes.append(len(packed) - before)
    return QuantileCache(
        merge_packed(packed, np.repeat(np.arange(len(sizes)), sizes), len(sizes))
    ).rows()


def merge_cached_sketches(
    rows: Sequence[CachedSketch], groups: Sequence[int], size: int
) -> list[CachedSketch]:
    """Merge rows of one cache into `size` sketches: row n joins group `groups[n]`, counted from 0.

    All rows belong to the same cache, and each row appears once.
    """
    if not rows:
        return QuantileCache(build_sketch_columns([]).merged([], size)).rows()
    among = rows[0].among.columns
    owner = [size] * len(among)  # other rows join an extra group, dropped below
    for row, group in zip(rows, groups, strict=True):
        owner[row.place] = group
    return QuantileCache(among.merged(owner, size + 1)).rows()[:size]


@cache
def _quantile(q: float) -> Question[float | None]:
    return lambda columns: columns.quantile(q)


@cache
def _upper_bound(q: float) -> Question[float | None]:
    return lambda columns: columns.upper_bounds(q)


EMPTY_SKETCH = merge_packed_groups([()])[0]
"""Sketch without values."""
