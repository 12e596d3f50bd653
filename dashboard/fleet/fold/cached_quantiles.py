"""Sketches of which all are asked the same, as a page asks every bin for its p99: the answer is
worked out once, for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np

from dashboard.fleet.fold.sketch_columns import SketchColumns, build_sketch_columns, merge_packed

T = TypeVar("T")
Question = Callable[[SketchColumns], Sequence[T]]
"""Has an answer for each row; it is known by what it is, so the same one is asked again and
again."""


@dataclass(frozen=True, slots=True, eq=False)
class QuantileCache:
    """Sketches as columns, with the answers that were worked out already."""

    columns: SketchColumns
    answers: dict[Any, Sequence[Any]] = field(default_factory=dict)

    def rows(self) -> list[CachedSketch]:
        """Each sketch by itself."""
        return [CachedSketch(self, place) for place in range(len(self.columns))]


@dataclass(frozen=True, slots=True, eq=False)
class CachedSketch:
    """One of them."""

    among: QuantileCache
    place: int

    def answer(self, question: Question[T]) -> T:
        """What this sketch answers."""
        known = self.among.answers.get(question)
        if known is None:
            known = self.among.answers[question] = question(self.among.columns)
        return cast(T, known[self.place])

    def quantile(self, q: float) -> float | None:
        """What `Sketch.quantile` says."""
        return self.answer(_quantile(q))

    def upper_bound(self, q: float) -> float | None:
        """What `Sketch.upper_bound` says."""
        return self.answer(_upper_bound(q))

    @property
    def mean(self) -> float | None:
        """Seconds of a value on average."""
        return self.answer(SketchColumns.means)


def merge_packed_groups(
    groups: Iterable[Iterable[bytes | memoryview[int] | None]],
) -> list[CachedSketch]:
    """One sketch per group, of its packed ones; where nothing is packed it knows no value."""
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
    """One sketch per group, 0 up to `size`, of the rows that `groups` puts into it; all rows are
    among the same sketches, each once."""
    if not rows:
        return QuantileCache(build_sketch_columns([]).merged([], size)).rows()
    among = rows[0].among.columns
    owner = [size] * len(among)  # what is not asked for goes into a group of its own
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
"""The sketch of no value."""
