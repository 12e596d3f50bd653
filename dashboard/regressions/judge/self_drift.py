"""Self drift: detects that a version slows down over hours or days, compared with its own first
day.

Algorithm: a one-sided CUSUM over residuals, in blocks of BLOCK_MINUTES. The model of the first day
has a level per instance and cell, one slope over log load, and HARMONICS waves over the day. The
slope is fitted by within-group least squares, the waves by harmonic regression. A block's value is
the median residual over instances.

The CUSUM scales a block by the robust noise (MAD), clips it at CUSUM_CLIP and subtracts CUSUM_K.
Above CUSUM_H it alarms. A stretch that ends now must confirm the alarm: at least MIN_DRIFT_BLOCKS
long, a mean of at least the tolerated change, and z above MIN_Z. The error of its mean is inflated
for first-order autocorrelation by sqrt((1 + r) / (1 - r)).

The last block at which the sum left zero dates the drift. The reported change is the mean since
then. A drift ends when the last MIN_DRIFT_BLOCKS are below half of the tolerated change.

Invariants: a drift never exceeds WATCH; an instance that joins later gets its level relative to the
others; if every known instance is gone, a new first day begins.

Source: Page, Continuous inspection schemes, Biometrika 41, 1954.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from dashboard.regressions.judge.inputs import CellKey, CellRows, InstanceMinute
from dashboard.regressions.judge.pooled_estimate import Unit
from dashboard.regressions.judge.settings import RatioMetric, Settings

BLOCK_MINUTES = 5
"""Minutes per block."""
DAY_BLOCKS = 1440 // BLOCK_MINUTES
MIN_FIRST_DAY_BLOCKS = DAY_BLOCKS // 2
"""Minimum number of first-day blocks with calls for a reference."""
MIN_LEVEL_BLOCKS = 36
"""Minimum number of blocks for an instance's level: on the first day, or after it joined later."""
MAX_LOOKBACK_BLOCKS = DAY_BLOCKS
"""Maximum number of blocks that a stretch reaches back."""
MIN_DRIFT_BLOCKS = 24
"""Blocks: minimum length of a drift, and of the recovery that ends it. The load of a busy neighbour
ends sooner."""
MIN_NOISE = 0.008
CUSUM_CLIP, CUSUM_K, CUSUM_H, MIN_Z = 4.0, 1.0, 15.0, 4.0
"""Maximum contribution of one block, allowance per block, alarm threshold of the sum, and minimum z
of the stretch."""
MAX_SLOPE = 0.2
MAX_AUTOCORRELATION = 0.98
MAD_TO_SIGMA = 1.4826
HARMONICS = 2
"""Number of harmonics of the day that describe the time of day."""

Floats = NDArray[np.float64]
LevelKey = tuple[Unit, CellKey]


@dataclass(frozen=True, slots=True)
class SelfDrift:
    """Mean slowdown of a version since the drift began, relative to its own first day. `z` is the
    confidence, corrected for autocorrelation of blocks."""

    region: str
    metric: str
    since: int
    change: float
    z: float
    instances: int
    reference: tuple[int, int]


@dataclass(frozen=True)
class FirstDayModel:
    """Model of a version's first day: a level for each instance and cell, a slope over load, and
    waves over the day."""

    expected: dict[LevelKey, float]
    slope: float
    waves: Floats
    middle: float
    noise: float
    spread: float
    memory: float
    first: int
    last: int

    def at(self, minute: int) -> float:
        """The contribution of the time of day."""
        return float(compute_harmonics(np.array([minute], float))[0] @ self.waves)


def compute_harmonics(minutes: Floats) -> Floats:
    """One row per minute: sines and cosines of the day."""
    turn = 2 * np.pi * minutes / 1440
    return np.stack(
        [wave(turn * number) for number in range(1, HARMONICS + 1) for wave in (np.sin, np.cos)],
        axis=1,
    )


def fit_slope(levels: Floats, loads: Floats) -> float:
    """The pooled slope of level over load within rows, clipped to +-MAX_SLOPE; NaN is absent."""
    away = loads - np.nanmean(loads, axis=1, keepdims=True)
    across = levels - np.nanmean(levels, axis=1, keepdims=True)
    spread = float(np.nansum(away * away))
    return (
        float(np.clip(np.nansum(away * across) / spread, -MAX_SLOPE, MAX_SLOPE))
        if spread > 0.0
        else 0.0
    )


class FirstDay:
    """The mean level and load of every instance and cell, by block."""

    def __init__(self, block: int) -> None:
        self._begin = block
        self._levels: dict[LevelKey, array[float]] = {}
        self._loads: dict[LevelKey, array[float]] = {}
        self._blocks = 0

    def add(self, block: int, means: Mapping[LevelKey, tuple[float, float]]) -> None:
        """Adds a block."""
        place = block - self._begin
        self._blocks += 1
        for key, (level, load) in means.items():
            for table, value in ((self._levels, level), (self._loads, load)):
                if key not in table:
                    table[key] = array("f", [math.nan]) * DAY_BLOCKS
                table[key][place] = value

    def full(self, block: int) -> bool:
        """True if the day is over."""
        return block - self._begin >= DAY_BLOCKS

    def learned(self) -> FirstDayModel | None:
        """The model of the first day; None if the version had too few blocks with calls."""
        keys = [
            key
            for key, row in self._levels.items()
            if sum(not math.isnan(value) for value in row) >= MIN_LEVEL_BLOCKS
        ]
        if self._blocks < MIN_FIRST_DAY_BLOCKS or not keys:
            return None
        levels, loads = (
            np.array([table[key] for key in keys], float) for table in (self._levels, self._loads)
        )
        slope = fit_slope(levels, loads)
        adjusted = levels - slope * loads
        expected = np.nanmean(adjusted, axis=1)
        apart = adjusted - expected[:, None]
        there = ~np.isnan(apart).all(axis=0)
        values = np.nanmedian(apart[:, there], axis=0)
        minutes = np.asarray((self._begin + np.flatnonzero(there)) * BLOCK_MINUTES, np.float64)
        design = np.column_stack([np.ones(len(values)), compute_harmonics(minutes)])
        found, *_ = np.linalg.lstsq(design, values, rcond=None)
        rest = values - design @ found
        variance = float(rest @ rest) / max(1, len(rest) - design.shape[1])
        along = float(rest[1:] @ rest[:-1]) / max(1, len(rest) - design.shape[1])
        middle = float(np.median(rest))
        return FirstDayModel(
            expected={
                key: float(value + found[0]) for key, value in zip(keys, expected, strict=True)
            },
            slope=slope,
            waves=found[1:],
            middle=middle,
            noise=max(MIN_NOISE, MAD_TO_SIGMA * float(np.median(np.abs(rest - middle)))),
            spread=max(MIN_NOISE, math.sqrt(variance)),
            memory=max(0.0, min(MAX_AUTOCORRELATION, along / variance)) if variance > 0.0 else 0.0,
            first=int(minutes[0]),
            last=int(minutes[-1]) + BLOCK_MINUTES - 1,
        )


class CusumDetector:
    """The drift detector of one level of one region of the candidate."""

    def __init__(self, metric: RatioMetric, settings: Settings) -> None:
        self.metric = metric
        self.drifted: SelfDrift | None = None
        self._effect = math.log1p(metric.tolerated)
        self._of_buckets = metric.of_buckets
        self._least = settings.bin_calls
        self._value: Callable[[InstanceMinute], float | None] = metric.value
        self._samples: Callable[[InstanceMinute], int] = metric.samples
        self._block = -1
        self._sums: dict[LevelKey, list[float]] = {}
        self._first: FirstDay | None = None
        self._own: FirstDayModel | None = None
        self._joining: dict[LevelKey, list[float]] = {}
        self._ring = 0.0
        self._began = 0
        """The block at which the CUSUM last left zero."""
        self._blocks = array("q")
        self._values = array("d")

    def add(self, region: str, minute: int, rows: Mapping[CellKey, CellRows]) -> None:
        """Adds a minute of the region."""
        block = minute // BLOCK_MINUTES
        if block != self._block:
            if self._sums:
                self._close(region, self._block)
            self._block, self._sums = block, {}
        sums, value_of, samples_of, least = self._sums, self._value, self._samples, self._least
        for cell, cell_rows in rows.items():
            for row in cell_rows.candidate:
                if self._of_buckets and row.bounds is not None:
                    continue  # a drift is smaller than a bucket of an engine
                value = value_of(row)
                if value is None or samples_of(row) < least or not 0.0 < value < math.inf:
                    continue
                entry = sums.get((row.unit, cell))
                if entry is None:
                    entry = sums[row.unit, cell] = [0.0, 0.0, 0.0]
                entry[0] += math.log(value)
                entry[1] += row.calls
                entry[2] += 1.0

    def _close(self, region: str, block: int) -> None:
        means = {
            key: (level / count, math.log(calls / count))
            for key, (level, calls, count) in self._sums.items()
        }
        if self._own is None:
            self._learn_first_day(block, means)
        else:
            self._compare_block(region, block, means, self._own)

    def _learn_first_day(self, block: int, means: Mapping[LevelKey, tuple[float, float]]) -> None:
        if self._first is not None and self._first.full(block):
            self._own, self._first = self._first.learned(), None
        if self._own is None:
            self._first = self._first or FirstDay(block)
            self._first.add(block, means)

    def _compare_block(
        self,
        region: str,
        block: int,
        means: Mapping[LevelKey, tuple[float, float]],
        own: FirstDayModel,
    ) -> None:
        day = own.at(block * BLOCK_MINUTES)
        apart = {key: level - own.slope * load - day for key, (level, load) in means.items()}
        known = [value - own.expected[key] for key, value in apart.items() if key in own.expected]
        if not known:
            # Every known instance is gone: the version begins a new first day.
            self._own, self.drifted, self._ring = None, None, 0.0
            self._blocks, self._values, self._joining = array("q"), array("d"), {}
            self._learn_first_day(block, means)
            return
        value = median(known)
        for key in apart.keys() - own.expected.keys():
            self._join(key, apart[key] - value, own)
        self._step(region, block, value - own.middle, len({unit for unit, _ in means}), own)

    def _join(self, key: LevelKey, apart: float, own: FirstDayModel) -> None:
        """Adds an instance that joined later. Its expected level is its first level relative to the
        other instances at that time."""
        waiting = self._joining.setdefault(key, [])
        waiting.append(apart)
        if len(waiting) >= MIN_LEVEL_BLOCKS:
            own.expected[key] = math.fsum(waiting) / len(waiting)
            del self._joining[key]

    def _step(
        self, region: str, block: int, value: float, instances: int, own: FirstDayModel
    ) -> None:
        self._blocks.append(block)
        self._values.append(value)
        if len(self._values) > MAX_LOOKBACK_BLOCKS:
            del self._values[0], self._blocks[0]
        if not self._ring:
            self._began = block
        away = (value - self._effect / 2) / own.noise
        self._ring = max(0.0, self._ring + max(-CUSUM_CLIP, min(CUSUM_CLIP, away)) - CUSUM_K)
        if self.drifted is not None:
            recent = self._values[-MIN_DRIFT_BLOCKS:]
            if math.fsum(recent) / len(recent) < self._effect / 2:
                self.drifted, self._ring = None, 0.0
            else:
                self.drifted = self._found(region, instances, own) or self.drifted
        elif self._ring > CUSUM_H:
            self.drifted = self._found(region, instances, own)

    def _found(self, region: str, instances: int, own: FirstDayModel) -> SelfDrift | None:
        """The change since the drift began, if a stretch up to now is long, large and certain
        enough; else None.

        The most prominent stretch would overstate the change: for a drift of 12% with a busy half
        hour, it is that half hour. The CUSUM dates the beginning, so the mean since then is not of
        a stretch selected for its size.
        """
        values = np.array(self._values, float)[::-1]
        counts = np.arange(1, len(values) + 1)
        changes = np.cumsum(values) / counts
        error = (
            own.spread
            * math.sqrt((1.0 + own.memory) / (1.0 - own.memory))
            * np.sqrt(1.0 / counts + 1.0 / DAY_BLOCKS)
        )
        z = changes / error
        if not ((counts >= MIN_DRIFT_BLOCKS) & (changes >= self._effect) & (z > MIN_Z)).any():
            return None
        place = max(0, sum(block >= self._began for block in self._blocks) - 1)
        reference = (own.first, own.last)
        since, change = self._began * BLOCK_MINUTES, math.expm1(float(changes[place]))
        return SelfDrift(
            region, self.metric.name, since, change, float(z[place]), instances, reference
        )
