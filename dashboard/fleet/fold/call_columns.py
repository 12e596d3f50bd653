"""Call columns: calls of many series as arrays of numbers and sketches, added by group.

Built from reports or from stored rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashboard.fleet.fold.counters import COUNTED_EAGER_CAUSES, COUNTER_MAX, CallCounts
from dashboard.fleet.fold.sketch_columns import (
    SketchColumns,
    build_sketch_columns,
    concatenate_sketches,
    sum_by_group,
    unpack_sketches,
)
from dashboard.fleet.fold.varints import Bools, Floats, Ints

COUNTS = (
    "calls",
    "errors",
    "compiled",
    "partial",
    *(f"eager_{cause}" for cause in COUNTED_EAGER_CAUSES),
    "unknown",
    "sampled",
)
SKETCHES = ("latency", "gpu", "warmup", "stalled")
STORED_COLUMNS = (*COUNTS, "items", "covered", *SKETCHES, "stalled_count")
"""Columns that a stored row must be read with before more calls can be added to it."""

COLUMNS = (
    *STORED_COLUMNS,
    "stalled_sum",
    *("caller_p50", "caller_p95", "caller_p99"),
    *("latency_count", "latency_sum", "p50", "p95", "p99"),
    *("gpu_count", "gpu_p50", "gpu_p95", "gpu_p99"),
)
QUANTILES = (0.5, 0.95, 0.99)
_SKETCHES_PER_ROW = len(SKETCHES)


@dataclass(frozen=True, slots=True)
class CallColumns:
    """One row per series and time.

    An absent item count is NaN. The sketches of row n are rows 4n to 4n + 3 of `sketches`. `tells`
    is True where the agents report stalled calls.
    """

    counts: Ints
    items: Floats
    covered: Floats
    tells: Bools
    sketches: SketchColumns

    def __len__(self) -> int:
        return len(self.items)

    def part(self, start: int, end: int) -> CallColumns:
        """Return the rows from `start` up to `end`."""
        return CallColumns(
            self.counts[start:end],
            self.items[start:end],
            self.covered[start:end],
            self.tells[start:end],
            self.sketches.part(_SKETCHES_PER_ROW * start, _SKETCHES_PER_ROW * end),
        )

    def merged(self, groups: Sequence[int], size: int) -> CallColumns:
        """Return the sums of the rows by group: row n joins group `groups[n]`, from 0 up to
        `size`."""
        group = np.asarray(groups, np.int64)
        # Each counter is at most COUNTER_MAX, and fewer than 8,192 rows are added at once. The sum
        # therefore fits 64 bits before the counter saturates.
        counts = np.zeros((size, len(COUNTS)), np.int64)
        np.add.at(counts, group, self.counts)
        np.minimum(counts, COUNTER_MAX, out=counts)
        known = ~np.isnan(self.items)
        items = np.bincount(group[known], weights=self.items[known], minlength=size).astype(
            np.float64
        )
        items[np.bincount(group[known], minlength=size) == 0] = np.nan
        tells = np.bincount(group[self.tells], minlength=size) > 0
        owners = (group[:, None] * _SKETCHES_PER_ROW + np.arange(_SKETCHES_PER_ROW)).ravel()
        return CallColumns(
            counts,
            items,
            sum_by_group(group, self.covered, size),
            tells,
            self.sketches.merged(owners, size * _SKETCHES_PER_ROW),
        )

    def saturated(self) -> list[int]:
        """Return the rows with a counter at COUNTER_MAX, or with a sketch that was scaled down at
        it."""
        counts = self.counts.max(axis=1, initial=0) >= COUNTER_MAX
        sketches = (
            self.sketches.count.reshape(len(self), _SKETCHES_PER_ROW).max(axis=1, initial=0)
            > COUNTER_MAX // 2
        )
        return [int(row) for row in np.flatnonzero(counts | sketches)]

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the values of COLUMNS for each row."""
        sketches = self.sketches
        filled = (sketches.count > 0).tolist()
        packed = [
            data if some else None for data, some in zip(sketches.packed(), filled, strict=True)
        ]
        latency, gpu, stalled = (_summarize_sketches(sketches, number) for number in (0, 1, 3))
        tells = self.tells.tolist()
        columns: list[Sequence[Any]] = [
            *self.counts.T.tolist(),
            [None if value != value else value for value in self.items.tolist()],
            self.covered.tolist(),
            *(packed[number::_SKETCHES_PER_ROW] for number in range(_SKETCHES_PER_ROW)),
            *(
                _mask_unreported(tells, values)
                for values in (stalled[0], stalled[1], *self._caller_quantiles())
            ),
            *latency,
            gpu[0],
            *gpu[2:],
        ]
        return list(zip(*columns, strict=True))

    def _caller_quantiles(self) -> list[list[float | None]]:
        """Return quantiles of the waiting time of callers after warm-up: steady and stalled calls
        together."""
        size = len(self)
        both = concatenate_sketches(
            self.sketches.every(0, _SKETCHES_PER_ROW), self.sketches.every(3, _SKETCHES_PER_ROW)
        ).merged([*range(size), *range(size)], size)
        return [both.quantile(q) for q in QUANTILES]


def build_call_columns(calls: Sequence[CallCounts]) -> CallColumns:
    """Build columns from the call counts of reports."""
    found = [
        sketch for each in calls for sketch in (each.latency, each.gpu, each.warmup, each.stalled)
    ]
    places = [place for place, sketch in enumerate(found) if sketch is not None]
    sketches = build_sketch_columns([sketch for sketch in found if sketch is not None])
    counts = [
        (c.calls, c.errors, c.compiled, c.partial, *c.eager, c.unknown, c.sampled) for c in calls
    ]
    tells = [c.stalled is not None for c in calls]
    return _build_columns(
        counts,
        [c.items for c in calls],
        [c.covered for c in calls],
        tells,
        sketches.merged(places, len(found)),
    )


def parse_stored_rows(rows: Sequence[Sequence[Any]]) -> CallColumns:
    """Build columns from stored rows, each with the values of STORED_COLUMNS."""
    width = len(COUNTS)
    found = [data for row in rows for data in row[width + 2 : width + 2 + _SKETCHES_PER_ROW]]
    places = [place for place, data in enumerate(found) if data is not None]
    sketches = unpack_sketches([data for data in found if data is not None])
    counts = [row[:width] for row in rows]
    tells = [row[width + 2 + _SKETCHES_PER_ROW] is not None for row in rows]
    merged = sketches.merged(places, len(found))
    return _build_columns(
        counts, [row[width] for row in rows], [row[width + 1] for row in rows], tells, merged
    )


def concatenate_columns(*parts: CallColumns) -> CallColumns:
    """Concatenate the rows of all parts."""
    return CallColumns(
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.items for part in parts]),
        np.concatenate([part.covered for part in parts]),
        np.concatenate([part.tells for part in parts]),
        concatenate_sketches(*(part.sketches for part in parts)),
    )


def _build_columns(
    counts: Sequence[Sequence[int]],
    items: Sequence[float | None],
    covered: Sequence[float],
    tells: Sequence[bool],
    sketches: SketchColumns,
) -> CallColumns:
    return CallColumns(
        np.array(counts, np.int64).reshape(len(items), len(COUNTS)),
        np.array([np.nan if value is None else value for value in items], np.float64),
        np.array(covered, np.float64),
        np.array(tells, np.bool_),
        sketches,
    )


def _summarize_sketches(sketches: SketchColumns, number: int) -> list[list[Any]]:
    """Return count, sum and quantiles of one of the four sketches of each row."""
    mine = sketches.every(number, _SKETCHES_PER_ROW)
    return [mine.count.tolist(), mine.total.tolist(), *(mine.quantile(q) for q in QUANTILES)]


def _mask_unreported(tells: Sequence[bool], values: Sequence[Any]) -> list[Any]:
    """Replace the values by None where the agents do not report stalled calls; absent is not
    zero."""
    return [value if told else None for told, value in zip(tells, values, strict=True)]
