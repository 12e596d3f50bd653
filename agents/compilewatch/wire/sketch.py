"""A base-2 exponential histogram as OpenTelemetry defines it: merging adds bins, so the order of merges changes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

SCALE = 5
BINS_PER_OCTAVE = 1 << SCALE
MAX_BINS = 2048
MIN_INDEX = -1074 * BINS_PER_OCTAVE - 1
MAX_INDEX = 1024 * BINS_PER_OCTAVE

# The bin bounds inside one octave: a mantissa of frexp, in [0.5, 1), lies in the bin whose upper bound is the first not below it.
_BOUNDS = tuple(2.0 ** (i / BINS_PER_OCTAVE - 1.0) for i in range(1, BINS_PER_OCTAVE))


def index_of(value: float) -> int:
    """The bin of a positive value: ceil(log2(value) x 2^scale) - 1; exact powers of two close their bin from above."""
    mantissa, exponent = math.frexp(value)
    if mantissa == 0.5:
        return (exponent - 1) * BINS_PER_OCTAVE - 1
    index = int(math.log2(mantissa) * BINS_PER_OCTAVE + BINS_PER_OCTAVE)
    # log2 rounds: next to a bound the table decides.
    if index < BINS_PER_OCTAVE - 1 and mantissa > _BOUNDS[index]:
        index += 1
    elif index > 0 and mantissa <= _BOUNDS[index - 1]:
        index -= 1
    return (exponent - 1) * BINS_PER_OCTAVE + index


def lower_bound(index: int) -> float:
    """The exclusive lower bound of a bin."""
    octave, step = divmod(index, BINS_PER_OCTAVE)
    return math.ldexp(2.0 ** (step / BINS_PER_OCTAVE), octave)


@dataclass(slots=True)
class Sketch:
    """Counts per bin; `bins[0]` is bin `offset`. Durations in seconds. `zero` counts values that are not above zero."""

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
        """The sketch of the values; NaN and infinities are left out, negative values count as zero."""
        sketch = cls()
        sketch.add_many(values)
        return sketch

    def add_many(self, values: Iterable[float]) -> None:
        """Adds values in bulk: one dictionary of bins, one merge."""
        found: dict[int, int] = {}
        kept = [value if value > 0.0 else 0.0 for value in values if math.isfinite(value)]
        if not kept:
            return
        frexp, log2 = math.frexp, math.log2
        zero = 0
        for value in kept:
            if value == 0.0:
                zero += 1
                continue
            mantissa, exponent = frexp(value)
            if mantissa == 0.5:
                index = exponent * 32 - 33
            else:
                step = int(log2(mantissa) * 32 + 32)
                if step < 31 and mantissa > _BOUNDS[step]:
                    step += 1
                elif step > 0 and mantissa <= _BOUNDS[step - 1]:
                    step -= 1
                index = exponent * 32 - 32 + step
            found[index] = found.get(index, 0) + 1
        self._note_range(len(kept), math.fsum(kept), min(kept), max(kept))
        self.zero += zero
        if found:
            self._make_room(min(found), max(found))
            offset, bins = self.offset, self.bins
            for index, n in found.items():
                bins[index - offset] += n
            self._shrink()

    def merge(self, other: Sketch) -> None:
        """Adds another sketch of the same scale to this one."""
        if other.scale != self.scale:
            raise ValueError(f"cannot merge a sketch of scale {other.scale} into one of scale {self.scale}")
        if other.count == 0:
            return
        self._note_range(other.count, other.sum, other.min, other.max)
        self.zero += other.zero
        if other.bins:
            self._make_room(other.offset, other.offset + len(other.bins) - 1)
            start = other.offset - self.offset
            bins = self.bins
            for i, n in enumerate(other.bins, start):
                bins[i] += n
            self._shrink()

    def quantile(self, q: float) -> float | None:
        """The value below which the share `q` lies, interpolated on the log scale inside its bin; None if empty."""
        if self.count == 0:
            return None
        rank = q * self.count
        if rank <= self.zero and self.zero:
            return self.min
        seen = float(self.zero)
        for i, n in enumerate(self.bins):
            if n and seen + n >= rank:
                within = (rank - seen) / n
                exponent = (self.offset + i + within) / BINS_PER_OCTAVE
                value = math.ldexp(2.0 ** (exponent % 1.0), math.floor(exponent))
                return min(max(value, self.min), self.max)
            seen += n
        return self.max

    def copy(self) -> Sketch:
        """A sketch of its own with the same content."""
        return Sketch(self.scale, self.count, self.sum, self.min, self.max, self.zero, self.offset, list(self.bins))

    def problem(self) -> str | None:
        """What contradicts itself in this sketch, as a sentence, or None; a sketch from outside is checked before it is merged."""
        if self.scale != SCALE:
            return f"scale is {self.scale}, expected {SCALE}"
        if len(self.bins) > MAX_BINS:
            return f"bins has {len(self.bins)} entries, expected at most {MAX_BINS}"
        if self.bins and not (MIN_INDEX <= self.offset and self.offset + len(self.bins) - 1 <= MAX_INDEX):
            return f"offset is {self.offset}, outside what a positive float can reach"
        if self.zero < 0 or self.count < 0 or any(n < 0 for n in self.bins):
            return "count, zero and bins must not be negative"
        if self.count != self.zero + sum(self.bins):
            return f"count is {self.count}, but zero and bins hold {self.zero + sum(self.bins)}"
        if not all(map(math.isfinite, (self.sum, self.min, self.max))):
            return "sum, min and max must be finite numbers"
        if self.min < 0 or self.min > self.max:
            return "min must be between 0 and max"
        return self._range_problem()

    def _range_problem(self) -> str | None:
        filled = [i for i, n in enumerate(self.bins) if n]
        if not filled:
            return None
        # One bin of slack: an agent's rounding next to a bound is not a contradiction.
        if self.max < lower_bound(self.offset + filled[-1] - 1) or (self.max > 0 and index_of(self.max) > self.offset + filled[-1] + 1):
            return "max lies outside the last filled bin"
        if not self.zero and (self.min <= 0 or abs(index_of(self.min) - self.offset - filled[0]) > 1):
            return "min lies outside the first filled bin"
        return None

    def items(self) -> Iterator[tuple[int, int]]:
        """Index and count of each filled bin."""
        return ((self.offset + i, n) for i, n in enumerate(self.bins) if n)

    def _note_range(self, count: int, total: float, low: float, high: float) -> None:
        if self.count == 0:
            self.min, self.max = low, high
        else:
            self.min, self.max = min(self.min, low), max(self.max, high)
        self.count += count
        self.sum += total

    def _make_room(self, first: int, last: int) -> None:
        if not self.bins:
            self.offset, self.bins = first, [0] * (last - first + 1)
            return
        if first < self.offset:
            self.bins[:0] = [0] * (self.offset - first)
            self.offset = first
        missing = last - self.offset - len(self.bins) + 1
        if missing > 0:
            self.bins.extend([0] * missing)

    def _shrink(self) -> None:
        """Keeps the number of bins legal: a span above the limit folds its lowest bins together, where nobody looks."""
        excess = len(self.bins) - MAX_BINS
        if excess > 0:
            self.bins[: excess + 1] = [sum(self.bins[: excess + 1])]
            self.offset += excess
