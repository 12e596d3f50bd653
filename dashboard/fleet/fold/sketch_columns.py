"""Sketch columns: many sketches as NumPy arrays, without a Python loop over their bins.

Columns hold the same sketches as `compilewatch.wire.sketch` and agree with its results for merging,
quantiles and packing. One row is one sketch; one entry is one filled bin.

Invariants:
- Entries are sorted by row, then by bin; every entry counts at least one value.
- `ends[n]` is the end of row n's entries; its start is `ends[n - 1]`, or 0.
- `count[n]` is `zero[n]` plus the sum of row n's entries.

`merged` lays out one dense array per group, from its lowest to its highest bin. It adds all entries
into these arrays at once and keeps the filled bins. Counts are scaled down before a group exceeds
COUNTER_MAX, so quantiles and means remain.

`merge_packed` works on CHUNK sketches at a time, because larger arrays leave the CPU cache.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from compilewatch.wire.sketch import BINS_PER_OCTAVE, SCALE, Sketch, lower_bound
from compilewatch.wire.varint import HEAD

from dashboard.fleet.fold.counters import COUNTER_MAX
from dashboard.fleet.fold.varints import Floats, Ints, decode_varints, encode_varints

K = TypeVar("K", bound=Hashable)
_HEAD = np.dtype([("scale", "i1"), ("total", "<f8"), ("low", "<f8"), ("high", "<f8")])
_FAR = 1 << 30
CHUNK = 512
assert _HEAD.itemsize == HEAD.size


@dataclass(frozen=True, slots=True)
class SketchColumns:
    """One row per sketch, one entry per filled bin, sorted by row and bin. `ends` holds the end of
    each row's entries."""

    count: Ints
    total: Floats
    low: Floats
    high: Floats
    zero: Ints
    row: Ints
    bin: Ints
    filled: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.count)

    @property
    def starts(self) -> Ints:
        """Return the start of each row's entries."""
        return (
            np.concatenate(([0], self.ends[:-1])).astype(np.int64) if len(self.ends) else self.ends
        )

    def part(self, start: int, end: int) -> SketchColumns:
        """Return the rows from `start` up to `end`."""
        first = int(self.ends[start - 1]) if start else 0
        last = int(self.ends[end - 1]) if end else 0
        rows, entries = slice(start, end), slice(first, last)
        return SketchColumns(
            self.count[rows],
            self.total[rows],
            self.low[rows],
            self.high[rows],
            self.zero[rows],
            self.row[entries] - start,
            self.bin[entries],
            self.filled[entries],
            self.ends[rows] - first,
        )

    def every(self, first: int, step: int) -> SketchColumns:
        """Return the rows `first`, `first + step`, and so on."""
        chosen = self.row % step == first
        row = self.row[chosen] // step
        rows = slice(first, None, step)
        size = len(self.count[rows])
        return SketchColumns(
            self.count[rows],
            self.total[rows],
            self.low[rows],
            self.high[rows],
            self.zero[rows],
            row,
            self.bin[chosen],
            self.filled[chosen],
            np.cumsum(np.bincount(row, minlength=size)).astype(np.int64),
        )

    def merged(self, groups: Sequence[int] | Ints, size: int) -> SketchColumns:
        """Return one sketch per group: row n joins group `groups[n]`, from 0 up to `size`.

        Rows of a group are added in their order.
        """
        group = np.asarray(groups, np.int64)
        if self.count.sum(dtype=np.float64) > COUNTER_MAX:
            self = self._thin_out(group, size)  # same rows, with smaller counts
        some = self.count > 0
        low, high = np.full(size, np.inf), np.zeros(size)
        np.minimum.at(low, group[some], self.low[some])
        np.maximum.at(high, group[some], self.high[some])
        owner = group[self.row]
        first, last = np.full(size, _FAR, np.int64), np.full(size, -_FAR, np.int64)
        starts, has = self.starts, self.ends > self.starts
        np.minimum.at(first, group[has], self.bin[starts[has]])
        np.maximum.at(last, group[has], self.bin[self.ends[has] - 1])
        width = np.maximum(last - first + 1, 0)
        begins = np.cumsum(width) - width
        dense = np.zeros(int(width.sum()), np.int64)
        np.add.at(dense, begins[owner] + self.bin - first[owner], self.filled)
        place = np.flatnonzero(dense)
        row = np.repeat(np.arange(size), width)[place]
        return SketchColumns(
            count=_count_by_group(group, self.count, size),
            total=sum_by_group(group, self.total, size),
            low=np.where(np.isfinite(low), low, 0.0),
            high=high,
            zero=_count_by_group(group, self.zero, size),
            row=row,
            bin=place - begins[row] + first[row],
            filled=dense[place],
            ends=np.cumsum(np.bincount(row, minlength=size)).astype(np.int64),
        )

    def _thin_out(self, group: Ints, size: int) -> SketchColumns:
        """Scale down the rows of groups that would exceed COUNTER_MAX; quantiles and mean
        remain."""
        sums = np.bincount(group, weights=self.count.astype(np.float64), minlength=size)
        factor = np.ceil(sums / COUNTER_MAX).astype(np.int64).clip(1)[group]
        zero, filled = self.zero // factor, self.filled // factor[self.row]
        count = zero + np.bincount(self.row, weights=filled, minlength=len(self)).astype(np.int64)
        return replace(self, count=count, total=self.total / factor, zero=zero, filled=filled)

    def quantile(self, q: float | Floats) -> list[float | None]:
        """Return the quantile of each row, as `Sketch.quantile` does.

        `q` is one share for all rows, or an array with one share per row. None for a row without
        values, and for a quantile in an open bin.
        """
        if not len(self):
            return []
        rank = q * self.count
        before = np.concatenate(([0], np.cumsum(self.filled)))
        # `reached` is the first bin of the row whose end reaches the share. Beyond the last bin,
        # the maximum remains.
        reached = np.searchsorted(before[1:], before[self.starts] + rank - self.zero, side="left")
        entry = np.minimum(np.maximum(reached, self.starts), np.maximum(self.ends - 1, 0))
        value = np.array(self.high)
        inside = (reached < self.ends) & (self.ends > self.starts)
        at, mine = entry[inside], np.flatnonzero(inside)
        within = (
            rank[mine] - self.zero[mine] - (before[at] - before[self.starts[mine]])
        ) / self.filled[at]
        exponent = (self.bin[at] + within) / BINS_PER_OCTAVE
        whole = np.floor(exponent)
        found = np.ldexp(np.power(2.0, exponent - whole), whole.astype(np.int64))
        value[mine] = np.minimum(np.maximum(found, self.low[mine]), self.high[mine])
        value[(self.zero > 0) & (rank <= self.zero)] = self.low[
            (self.zero > 0) & (rank <= self.zero)
        ]
        known = (self.count > 0) & ~(
            (self.zero == 0)
            & (self.low <= 0)
            & (self.ends > self.starts)
            & (reached <= self.starts)
        )
        return [
            each if counted else None
            for each, counted in zip(value.tolist(), known.tolist(), strict=True)
        ]

    def upper_bounds(self, q: float) -> list[float | None]:
        """Return the upper bound of each row, as `Sketch.upper_bound` does."""
        opened = (self.count > self.zero) & (self.zero == 0) & (self.low <= 0)
        found: list[float | None] = [None] * len(self)
        for row in np.flatnonzero(opened).tolist():
            first = int(self.starts[row])
            if q * self.count[row] <= self.filled[first]:
                found[row] = min(lower_bound(int(self.bin[first]) + 1), float(self.high[row]))
        return found

    def means(self) -> list[float | None]:
        """Return the mean of each row in seconds; None without values."""
        return [
            total / count if count else None
            for total, count in zip(self.total.tolist(), self.count.tolist(), strict=True)
        ]

    def packed(self) -> list[bytes]:
        """Return each row packed, as `Sketch.pack` does."""
        size = len(self)
        heads = np.zeros(size, _HEAD)
        heads["scale"], heads["total"], heads["low"], heads["high"] = (
            SCALE,
            self.total,
            self.low,
            self.high,
        )
        numbers, ends = self._numbers()
        tail, places = encode_varints(numbers)
        cuts = places[ends].tolist()
        head, step, start, out = heads.tobytes(), HEAD.size, 0, []
        for number, cut in enumerate(cuts):
            out.append(head[number * step : (number + 1) * step] + tail[start:cut])
            start = cut
        return out

    def sketches(self) -> list[Sketch]:
        """Return each row as a sketch."""
        columns = (self.count, self.total, self.low, self.high, self.zero, self.starts, self.ends)
        bins, filled = self.bin.tolist(), self.filled.tolist()
        found = []
        for count, total, low, high, zero, start, end in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            offset = bins[start] if end > start else 0
            dense = [0] * (bins[end - 1] - offset + 1) if end > start else []
            for place in range(start, end):
                dense[bins[place] - offset] = filled[place]
            found.append(Sketch(SCALE, count, total, low, high, zero, offset, dense))
        return found

    def _numbers(self) -> tuple[Ints, Ints]:
        """Return the integers of all packed rows in sequence, and the end of each row's
        integers."""
        starts, has = self.starts, self.ends > self.starts
        gap = np.diff(self.bin, prepend=0) - 1
        gap[starts[has]] = 0
        length = np.where(gap > 0, 3, 1)
        before = np.concatenate(([0], np.cumsum(length)))
        ends = before[self.ends] + 2 * np.arange(1, len(self) + 1)
        heads = ends - (before[self.ends] - before[starts]) - 2
        numbers = np.zeros(int(ends[-1]) if len(self) else 0, np.int64)
        numbers[heads] = self.zero
        offset = np.zeros(len(self), np.int64)
        offset[has] = self.bin[starts[has]]
        numbers[heads + 1] = np.where(offset >= 0, offset * 2, -offset * 2 - 1)
        last = before[1:] - 1 + 2 * (self.row + 1)
        numbers[last] = self.filled
        numbers[last[gap > 0] - 1] = gap[gap > 0]
        return numbers, ends


def build_sketch_columns(sketches: Sequence[Sketch]) -> SketchColumns:
    """Build columns from sketches."""
    width = np.fromiter((len(each.bins) for each in sketches), np.int64, len(sketches))
    filled = np.fromiter(
        chain.from_iterable(each.bins for each in sketches), np.int64, int(width.sum())
    )
    offset = np.fromiter((each.offset for each in sketches), np.int64, len(sketches))
    row = np.repeat(np.arange(len(sketches)), width)
    place = (
        np.arange(len(filled))
        - np.repeat(np.cumsum(width) - width, width)
        + np.repeat(offset, width)
    )
    kept = filled > 0
    row = row[kept]
    return SketchColumns(
        np.array([each.count for each in sketches], np.int64),
        np.array([each.sum for each in sketches], np.float64),
        np.array([each.min for each in sketches], np.float64),
        np.array([each.max for each in sketches], np.float64),
        np.array([each.zero for each in sketches], np.int64),
        row,
        place[kept],
        filled[kept],
        np.cumsum(np.bincount(row, minlength=len(sketches))).astype(np.int64),
    )


def unpack_sketches(packed: Sequence[bytes | memoryview[int]]) -> SketchColumns:
    """Build columns from packed sketches.

    Raises ValueError for another scale or a truncated sketch.
    """
    size = len(packed)
    if not size:
        return build_sketch_columns([])
    heads, tails, lengths = _split_packed(packed)
    if np.any(heads["scale"] != SCALE):
        raise ValueError(f"cannot merge sketches of a scale other than {SCALE}")
    numbers, counts = decode_varints(tails, lengths)
    begins = np.cumsum(counts) - counts
    if np.any((numbers[begins + counts - 1] == 0) & (counts > 2)):
        raise ValueError("a packed sketch is truncated")
    zero, offset = numbers[begins], numbers[begins + 1]
    offset = (offset >> 1) ^ -(offset & 1)
    # Two integers form the head. Then each integer counts one bin; after a zero, the next integer
    # is the number of empty bins.
    entry = numbers != 0
    entry[begins] = entry[begins + 1] = True
    gaps = np.flatnonzero(~entry)
    steps = np.ones(len(numbers), np.int64)
    steps[begins] = steps[begins + 1] = steps[gaps] = 0
    steps[gaps + 1] = numbers[gaps + 1]
    entry[begins] = entry[begins + 1] = entry[gaps + 1] = False
    ahead = np.cumsum(steps) - steps
    at = np.flatnonzero(entry)
    row, filled = np.repeat(np.arange(size), counts)[at], numbers[at]
    places = ahead[at] + (offset - ahead[begins])[row]
    ends = np.searchsorted(at, begins + counts)
    before = np.concatenate(([0], np.cumsum(filled)))
    count = zero + np.diff(before[ends], prepend=0)
    return SketchColumns(
        count, heads["total"], heads["low"], heads["high"], zero, row, places, filled, ends
    )


def _split_packed(packed: Sequence[bytes | memoryview[int]]) -> tuple[Any, Any, Ints]:
    """Return the heads, the bytes after the heads, and the number of these bytes per sketch."""
    lengths = np.fromiter(map(len, packed), np.int64, len(packed))
    if lengths.min() < HEAD.size:
        raise ValueError("a packed sketch is truncated")
    whole = np.frombuffer(b"".join(packed), np.uint8)
    head = (np.cumsum(lengths) - lengths)[:, None] + np.arange(HEAD.size)
    behind = np.ones(len(whole), bool)
    behind[head] = False
    return whole[head].view(_HEAD).ravel(), whole[behind], lengths - HEAD.size


def merge_packed(
    packed: Sequence[bytes | memoryview[int]], groups: Sequence[int] | Ints, size: int
) -> SketchColumns:
    """Merge any number of packed sketches into one sketch per group.

    Sketches are merged in chunks: arrays larger than the CPU cache cost ten times more.
    """
    parts, owners = [build_sketch_columns([])], [np.zeros(0, np.int64)]
    for start in range(0, len(packed), CHUNK):
        mine, places = np.unique(
            np.asarray(groups[start : start + CHUNK], np.int64), return_inverse=True
        )
        parts.append(unpack_sketches(packed[start : start + CHUNK]).merged(places, len(mine)))
        owners.append(mine)
    return concatenate_sketches(*parts).merged(np.concatenate(owners), size)


def merge_packed_by_key(
    pairs: Iterable[tuple[K, bytes | memoryview[int] | None]],
) -> dict[K, Sketch]:
    """Merge packed sketches by key, in the order of the first sketch per key; None is skipped."""
    places: dict[K, int] = {}
    packed, groups = [], []
    for key, data in pairs:
        if data:
            packed.append(data)
            groups.append(places.setdefault(key, len(places)))
    return dict(zip(places, merge_packed(packed, groups, len(places)).sketches(), strict=True))


def concatenate_sketches(*parts: SketchColumns) -> SketchColumns:
    """Concatenate the rows of all parts."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("count", "total", "low", "high", "zero", "bin", "filled")
    }
    rows = np.cumsum([0, *(len(part) for part in parts)])
    entries = np.cumsum([0, *(len(part.bin) for part in parts)])
    return SketchColumns(
        **columns,
        row=np.concatenate([part.row + shift for part, shift in zip(parts, rows, strict=False)]),
        ends=np.concatenate(
            [part.ends + shift for part, shift in zip(parts, entries, strict=False)]
        ),
    )


def sum_by_group(group: Ints, values: Floats, size: int) -> Floats:
    """Return the sum of floats per group, added in order."""
    return np.bincount(group, weights=values, minlength=size).astype(np.float64)


def _count_by_group(group: Ints, values: Ints, size: int) -> Ints:
    """Return the exact sum of integers per group."""
    sums = np.zeros(size, np.int64)
    np.add.at(sums, group, values)
    return sums
