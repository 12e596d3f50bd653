"""Decisions of other methods on a simulated fleet: a pooled test, a Kayenta-style judge and a
threshold, each with its first alarm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from tests.bench.fleet_model import Fleet
from tests.bench.fleet_sim import Simulated

Floats = NDArray[np.float64]

WARM_UP = 5
LOOK = 5
"""Minutes between two evaluations of the Kayenta-style judge; an evaluation each minute would raise
more alarms."""
HOUR = 60


@dataclass(frozen=True)
class Alarms:
    """The minute of each method's first alarm, counted from the deployment; None without an
    alarm."""

    pooled: int | None
    kayenta: int | None
    threshold: int | None


class Levels(NamedTuple):
    """Per minute: calls, the mean of the log call time over all calls, and the sum of squares
    within and between."""

    calls: Floats
    mean: Floats
    squares: Floats


def alarms(fleet: Fleet, drawn: Simulated) -> Alarms:
    """All three methods on the same calls, as if every call of a version were one sample,
    regardless of instance, machine or shape."""
    base, cand = levels(fleet, drawn, candidate=False), levels(fleet, drawn, candidate=True)
    past = slice(max(0, fleet.history - HOUR), fleet.history) if fleet.sequential else None
    return Alarms(
        pooled(base, cand, fleet),
        kayenta(base, cand, fleet, past),
        threshold(base, cand, fleet, past),
    )


def levels(fleet: Fleet, drawn: Simulated, *, candidate: bool) -> Levels:
    """One arm, with all instances and shapes together."""
    of_arm = drawn.candidate == candidate
    calls, level = drawn.calls[of_arm].astype(float), np.nan_to_num(drawn.p50[of_arm])
    count = calls.sum(axis=(0, 2))
    mean = (calls * level).sum(axis=(0, 2)) / np.maximum(count, 1)
    squares = (calls * (level**2 + fleet.call_sd**2)).sum(axis=(0, 2))
    return Levels(count, np.where(count > 0, mean, np.nan), squares)


def pooled(base: Levels, cand: Levels, fleet: Fleet) -> int | None:
    """Welch's test over all calls so far, one-sided, p < .001 and at least 5% slower, evaluated
    each minute."""
    start = fleet.history + WARM_UP
    sums = []
    for side, first in ((base, 0 if fleet.sequential else start), (cand, start)):
        calls = side.calls.copy()
        calls[:first] = 0
        total = np.cumsum(calls)
        mean = np.cumsum(calls * np.nan_to_num(side.mean)) / np.maximum(total, 1)
        squares = np.cumsum(np.where(calls > 0, side.squares, 0.0))
        sums.append((total, mean, squares / np.maximum(total, 1) - mean**2))
    (n, mean, variance), (m, other, spread) = sums
    z = (other - mean) / np.sqrt(
        np.maximum(variance / np.maximum(n, 1) + spread / np.maximum(m, 1), 1e-12)
    )
    return first_of(
        (z > 3.09) & (other - mean > np.log(1.05)) & (n > 0) & (m > 0), start + 20, fleet
    )


def kayenta(base: Levels, cand: Levels, fleet: Fleet, past: slice | None) -> int | None:
    """Mann-Whitney on the minute values of the last hour (of the hour before the deployment if the
    old version is gone), confidence .98, higher."""
    for minute in range(fleet.history + WARM_UP + HOUR, fleet.history + fleet.minutes, LOOK):
        window = slice(minute - HOUR, minute)
        x, y = cand.mean[window], base.mean[past or window]
        x, y = x[~np.isnan(x)], y[~np.isnan(y)]
        if (
            len(x) >= HOUR // 2
            and len(y) >= HOUR // 2
            and np.median(x) > np.median(y)
            and mannwhitneyu(x, y).pvalue < 0.02
        ):
            return minute - fleet.history
    return None


def threshold(base: Levels, cand: Levels, fleet: Fleet, past: slice | None) -> int | None:
    """At least 10% slower in five consecutive checks, one per minute."""
    reference = np.nanmean(base.mean[past]) if past else base.mean
    over = np.nan_to_num(cand.mean - reference, nan=-1.0) > np.log(1.10)
    running = np.convolve(over, np.ones(5), mode="full")[: len(over)] >= 5
    return first_of(running, fleet.history + WARM_UP + 5, fleet)


def first_of(alarm: NDArray[np.bool_], start: int, fleet: Fleet) -> int | None:
    """The first minute with an alarm, from a start on."""
    found = np.flatnonzero(alarm[start:])
    return int(found[0]) + start - fleet.history if len(found) else None
