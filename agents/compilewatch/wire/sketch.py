"""Quantile sketch: a base-2 exponential histogram as OpenTelemetry's data model defines it, with a
fixed scale of 5.

Bin `i` covers (2^(i/32), 2^((i+1)/32)], so adjacent bounds differ by 2.2% and an interpolated
quantile is off by at most that width (about 1.1% around the middle of a bin).
- Range: bins -1024 to 1023, about 0.23 ns to 4.3e9 s. Values outside join the outermost bins;
  values at or below zero count in `zero`.
- Merge: bins of the same scale add up, so `count`, `zero`, `bins`, `min` and `max` do not depend on
  the order of merges. `sum` is a float and depends on it only by rounding.
- Invariant: `count` equals `zero` plus the sum of `bins`. `problem` checks it for sketches from
  other processes.
- Bounds come from a table and a binary search instead of `log2`, so powers of two fall into exact
  bins on every platform.
- Storage: `bins` is dense from the first to the last filled bin; `pack` stores varints and runs of
  zeros.

Adding n values costs one sort and one search per filled bin; merge and quantile are linear in the
number of bins. Sketches are not synchronized: each belongs to one thread.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from compilewatch.wire import varint

SCALE = 5
BINS_PER_OCTAVE = 1 << SCALE
MIN_INDEX = -1024
MAX_INDEX = 1023
MAX_BINS = MAX_INDEX - MIN_INDEX + 1
MAX_DURATION_SECONDS = 1e15

# The upper bound of every bin but the last. Powers of two are exact. Values outside 0.24 ns to
# 4.3e9 s join the outermost bins.
_STEPS = tuple(2.0 ** (step / BINS_PER_OCTAVE) for step in range(BINS_PER_OCTAVE))
_UPPER = [
    math.ldexp(_STEPS[index % BINS_PER_OCTAVE], index // BINS_PER_OCTAVE)
    for index in range(MIN_INDEX + 1, MAX_INDEX + 1)
]


def index_of(value: float) -> int:
    """Returns the bin of a positive value: ceil(log2(value) * 2^scale) - 1.

    A bin includes its upper bound.
    """
    return bisect_left(_UPPER, value) + MIN_INDEX


def lower_bound(index: int) -> float:
    """Returns the exclusive lower bound of a bin."""
    octave, step = divmod(index, BINS_PER_OCTAVE)
    return math.ldexp(_STEPS[step], octave)


@dataclass(slots=True)
class Sketch:
    """Counts per bin; `bins[0]` is bin `offset`. Values are seconds; `zero` counts values at or
    below zero.

    If `min` is 0 and `zero` is 0, the first filled bin is open: only the upper bound of its values
    is known.
    """

    scale: int = SCALE
    count: int = 0
    sum: float = 0.0
    min: float = 0.0
    max: float = 0.0
    zero: int = 0
    offset: int = 0
    bins: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, values: Iterable[float]) -> Sketch:
        """Builds the sketch of the values.

        Skips values that are not durations (NaN, infinite, longer than `MAX_DURATION_SECONDS`).
        Counts negative values as zero.
        """
        sketch = cls()
        sketch.add_many(values)
        return sketch

    def add_many(self, values: Iterable[float]) -> None:
        """Adds many values: one sort, then one search per filled bin."""
        ordered = sorted(values)
        if ordered and not (math.isfinite(sum(ordered)) and ordered[-1] <= MAX_DURATION_SECONDS):
            ordered = sorted(
                value for value in ordered if -math.inf < value <= MAX_DURATION_SECONDS
            )
        if not ordered:
            return
        start = zero = bisect_right(ordered, 0.0)
        total = math.fsum(ordered[zero:])
        self._update_range(
            len(ordered), total, max(0.0, float(ordered[0])), max(0.0, float(ordered[-1]))
        )
        self.zero += zero
        if zero == len(ordered):
            return
        self._grow(index_of(ordered[zero]), index_of(ordered[-1]))
        offset, bins, count = self.offset, self.bins, len(ordered)
        while start < count:
            index = bisect_left(_UPPER, ordered[start])
            end = bisect_right(ordered, _UPPER[index], start) if index < MAX_BINS - 1 else count
            bins[index + MIN_INDEX - offset] += end - start
            start = end

    def merge(self, other: Sketch) -> None:
        """Adds another sketch of the same scale to this one."""
        if other.scale != self.scale:
            raise ValueError(
                f"cannot merge a sketch of scale {other.scale} into one of scale {self.scale}"
            )
        if other.count == 0:
            return
        self._update_range(other.count, other.sum, other.min, other.max)
        self.zero += other.zero
        if other.bins:
            start, width = other.offset - self.offset, len(other.bins)
            if start < 0 or start + width > len(self.bins):
                self._grow(other.offset, other.offset + width - 1)
                start = other.offset - self.offset
            bins = self.bins
            for n in other.bins:
                if n:
                    bins[start] += n
                start += 1

    def quantile(self, q: float) -> float | None:
        """Returns the quantile `q`, interpolated on the log scale within its bin.

        None if the sketch is empty or the quantile lies in an open bin.
        """
        if self.count == 0 or self.upper_bound(q) is not None:
            return None
        rank = q * self.count
        if rank <= self.zero and self.zero:
            return self.min
        up_to = list(accumulate(self.bins, initial=self.zero))
        i = bisect_left(up_to, rank, 1)
        while i < len(up_to) and up_to[i] == up_to[i - 1]:
            i += 1  # rank 0 lies in the first filled bin
        if i < len(up_to):
            exponent = (
                self.offset + i - 1 + (rank - up_to[i - 1]) / (up_to[i] - up_to[i - 1])
            ) / BINS_PER_OCTAVE
            value = math.ldexp(2.0 ** (exponent % 1.0), math.floor(exponent))
            return min(max(value, self.min), self.max)
        return self.max

    def upper_bound(self, q: float) -> float | None:
        """Returns the upper bound of the quantile `q` if it lies in an open bin; None otherwise."""
        if self.count == self.zero or self.zero or self.min > 0:
            return None
        index, first = next(self.items())
        return min(lower_bound(index + 1), self.max) if q * self.count <= first else None

    def copy(self) -> Sketch:
        """Returns an independent copy."""
        return Sketch(
            self.scale,
            self.count,
            self.sum,
            self.min,
            self.max,
            self.zero,
            self.offset,
            list(self.bins),
        )

    def problem(self) -> str | None:
        """Returns the inconsistency of this sketch as a sentence, or None.

        A sketch from another process is checked before a merge.
        """
        if self.scale != SCALE:
            return f"scale is {self.scale}, expected {SCALE}"
        if len(self.bins) > MAX_BINS:
            return f"bins has {len(self.bins)} entries, expected at most {MAX_BINS}"
        if self.bins and (self.offset < MIN_INDEX or self.offset + len(self.bins) - 1 > MAX_INDEX):
            return f"offset is {self.offset}: bins must lie between {MIN_INDEX} and {MAX_INDEX}"
        if self.zero < 0 or self.count < 0 or (self.bins and min(self.bins) < 0):
            return "count, zero and bins must not be negative"
        if self.count != self.zero + sum(self.bins):
            return f"count is {self.count}, but zero and bins hold {self.zero + sum(self.bins)}"
        if not all(map(math.isfinite, (self.sum, self.min, self.max))):
            return "sum, min and max must be finite numbers"
        if self.min < 0 or self.min > self.max:
            return "min must be between 0 and max"
        return self._range_problem()

    def _range_problem(self) -> str | None:
        if self.count == self.zero:
            return None
        first = next(i for i, n in enumerate(self.bins) if n)
        last = len(self.bins) - next(i for i, n in enumerate(reversed(self.bins), start=1) if n)
        # One bin of slack: rounding next to a bound is no inconsistency.
        if self.max <= 0 or abs(index_of(self.max) - self.offset - last) > 1:
            return "max lies outside the last filled bin"
        if not self.zero and self.min > 0 and abs(index_of(self.min) - self.offset - first) > 1:
            return "min lies outside the first filled bin"
        return None

    def pack(self) -> bytes:
        """Encodes the sketch compactly for a database column; `unpack` restores an equal one."""
        head = varint.HEAD.pack(self.scale, self.sum, self.min, self.max)
        return head + varint.encode_varints(
            (self.zero, varint.zigzag(self.offset), *varint.encode_runs(self.bins))
        )

    @classmethod
    def unpack(cls, data: bytes) -> Sketch:
        """Decodes a packed sketch."""
        scale, total, low, high = varint.HEAD.unpack_from(data)
        zero, offset, *runs = varint.decode_varints(data[varint.HEAD.size :])
        bins = varint.decode_runs(runs)
        return cls(scale, zero + sum(bins), total, low, high, zero, varint.unzigzag(offset), bins)

    def items(self) -> Iterator[tuple[int, int]]:
        """Yields index and count of each filled bin."""
        return ((self.offset + i, n) for i, n in enumerate(self.bins) if n)

    def _update_range(self, count: int, total: float, low: float, high: float) -> None:
        if low < self.min or not self.count:
            self.min = low
        if high > self.max or not self.count:
            self.max = high
        self.count += count
        self.sum += total

    def _grow(self, first: int, last: int) -> None:
        if not self.bins:
            self.offset, self.bins = first, [0] * (last - first + 1)
            return
        if first < self.offset:
            self.bins[:0] = [0] * (self.offset - first)
            self.offset = first
        missing = last - self.offset - len(self.bins) + 1
        if missing > 0:
            self.bins.extend([0] * missing)
