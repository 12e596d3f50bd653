"""Decisions of other methods on a simulated fleet, each with its first alarm: a pooled test, a
Kayenta-style judge, a threshold, and two sequential tests on the means of minutes.

Every method sees all calls of a version as one sample, regardless of instance, machine or shape.

Sources: Welch (1947); Mann and Whitney (1947), as Kayenta uses it; mixture sequential probability
ratio test (Robbins 1970; Johari et al., Always valid inference, 2022); asymptotic confidence
sequence, one-sided (Waudby-Smith et al., Time-uniform central limit theory, 2024).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import mannwhitneyu

from tests.bench.fleet_model import Bools, Fleet, Floats
from tests.bench.fleet_sim import Simulated

WARM_UP = 5
LOOK = 5
"""Minutes between two evaluations of the Kayenta-style judge; an evaluation each minute would raise
more alarms."""
HOUR = 60
DAY = 1440
SMALLEST_EFFECT = np.log(1.05)
ALPHA = 0.05
MIXTURE_SD = 0.1
"""Standard deviation of the changes, on the log, over which mSPRT mixes."""
TUNED_FOR = 60
"""Minutes at which the confidence sequence is narrowest."""
LEAST_MINUTES = 20


class Levels(NamedTuple):
    """Per minute: calls, the mean of the log call time over all calls, and the sum of squares
    within and between."""

    calls: Floats
    mean: Floats
    squares: Floats


def find_alarms(fleet: Fleet, drawn: Simulated) -> dict[str, int | None]:
    """The minute of each method's first alarm, counted from the deployment; None without an
    alarm."""
    base, cand = levels(fleet, drawn, candidate=False), levels(fleet, drawn, candidate=True)
    past = slice(max(0, fleet.history - HOUR), fleet.history) if fleet.sequential else None
    changes = changes_by_minute(fleet, base, cand)
    return {
        "pooled": pooled(base, cand, fleet),
        "kayenta": kayenta(base, cand, fleet, past),
        "threshold": threshold(base, cand, fleet, past),
        "msprt": sequential_ratio(changes),
        "sequence": confidence_sequence(changes),
    }


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
        (z > 3.09) & (other - mean > SMALLEST_EFFECT) & (n > 0) & (m > 0),
        start + LEAST_MINUTES,
        fleet.history,
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
    return first_of(running, fleet.history + WARM_UP + 5, fleet.history)


def changes_by_minute(fleet: Fleet, base: Levels, cand: Levels) -> Floats:
    """The candidate's change in each minute from the deployment on; NaN where it is unknown. If the
    old version is gone, it is compared with the same minute of the day before."""
    reference = base.mean
    if fleet.sequential:
        reference = np.concatenate([np.full(DAY, np.nan), base.mean])[: len(base.mean)]
        if fleet.history < DAY:
            reference = np.full(len(base.mean), np.nanmean(base.mean[: fleet.history]))
    changes = (cand.mean - reference)[fleet.history :]
    changes[:WARM_UP] = np.nan
    return np.asarray(changes)


class Sums(NamedTuple):
    """Per minute, over the known changes so far: their number, mean and standard deviation."""

    count: Floats
    mean: Floats
    sd: Floats


def sum_changes(changes: Floats) -> Sums:
    """Running sums."""
    known = ~np.isnan(changes)
    values = np.where(known, changes, 0.0)
    count = np.maximum(np.cumsum(known), 1).astype(float)
    mean = np.cumsum(values) / count
    variance = np.cumsum(values**2) / count - mean**2
    return Sums(count, mean, np.sqrt(np.maximum(variance, 1e-12)))


def sequential_ratio(changes: Floats) -> int | None:
    """mSPRT with a normal mixture at alpha .05, and at least 5% slower."""
    n, mean, sd = sum_changes(changes)
    spread, mixed = sd**2, MIXTURE_SD**2
    log_ratio = 0.5 * np.log(spread / (spread + n * mixed)) + (
        mixed * (n * mean) ** 2 / (2 * spread * (spread + n * mixed))
    )
    return first_of((log_ratio > -np.log(ALPHA)) & is_slower(n, mean), 0, 0)


def confidence_sequence(changes: Floats) -> int | None:
    """The lower bound of an asymptotic confidence sequence at alpha .05 is above 0, and at least 5%
    slower."""
    n, mean, sd = sum_changes(changes)
    logged = -2 * np.log(2 * ALPHA)
    of_time = n * (logged + np.log(logged + 1)) / TUNED_FOR + 1
    margin = sd * np.sqrt(
        2 * of_time / (n * (of_time - 1)) * np.log1p(np.sqrt(of_time) / (2 * ALPHA))
    )
    return first_of((mean > margin) & is_slower(n, mean), 0, 0)


def is_slower(count: Floats, mean: Floats) -> Bools:
    """True with enough minutes and a change that matters."""
    return np.asarray((count >= LEAST_MINUTES) & (mean > SMALLEST_EFFECT))


def first_of(alarm: Bools, start: int, deployed: int) -> int | None:
    """The first minute with an alarm, from a start on, counted from the deployment."""
    found = np.flatnonzero(alarm[start:])
    return int(found[0]) + start - deployed if len(found) else None
