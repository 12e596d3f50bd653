"""Break-even: time that compiled calls saved compared with eager calls, and the calls that repay
compilation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

INSTANCE_SPREAD_RATIO = 0.05
"""Relative standard deviation between healthy instances of one version."""
Z_80_PERCENT = 1.28
MIN_CALLS = 20
MAX_CALL_S = 86400.0
"""Limit of a plausible mean in seconds. A larger mean is a fault and would dominate all savings."""


class SeriesTimes(Protocol):
    """Calls of one series.

    `latency_sum` and `gpu_sum` are seconds of the timed calls on the host and on the GPU.
    """

    @property
    def version(self) -> str: ...
    @property
    def place(self) -> tuple[str, str, str, int]: ...
    @property
    def last_minute(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def latency_sum(self) -> float: ...
    @property
    def latency_count(self) -> int: ...
    @property
    def gpu_sum(self) -> float: ...
    @property
    def gpu_count(self) -> int: ...


@dataclass(frozen=True)
class Savings:
    """Seconds saved compared with eager calls of the same place, with an 80% interval.

    `on_gpu` is the number of calls that were compared by GPU time.
    """

    seconds: float
    low: float
    high: float
    calls: int
    on_gpu: int
    newest: int
    reference_calls: int
    versions: tuple[str, ...]


def estimate_savings(calls: Sequence[SeriesTimes], eager: Sequence[SeriesTimes]) -> Savings | None:
    """Compare means in the same region, shape bucket, GPU type and world size; None without a pair.

    An asynchronous call returns on the host before the GPU starts. GPU times are therefore compared
    where both sides have them.
    """
    seconds = variance = 0.0
    compared = used = newest = on_gpu = 0
    versions: dict[str, None] = {}
    for one in calls:
        like = [other for other in eager if other.place == one.place and other.latency_count]
        means = _compare_means([one], like)
        if means is None:
            continue
        mine, theirs, there = means
        seconds += (theirs - mine) * one.calls
        variance += (INSTANCE_SPREAD_RATIO * one.calls) ** 2 * (theirs**2 + mine**2)
        compared, used = compared + one.calls, used + sum(other.latency_count for other in like)
        on_gpu += one.calls if there else 0
        newest = max(newest, *(other.last_minute for other in like))
        versions |= dict.fromkeys(other.version for other in like)
    if not compared:
        return None
    error = Z_80_PERCENT * math.sqrt(variance)
    return Savings(
        seconds, seconds - error, seconds + error, compared, on_gpu, newest, used, tuple(versions)
    )


def compute_break_even(spent: float, saved: float, calls: int) -> float | None:
    """Return the number of calls that repay the spent seconds; None if compiled calls are not
    faster."""
    return spent / (saved / calls) if saved > 0 and calls else None


def _compare_means(
    mine: Sequence[SeriesTimes], theirs: Sequence[SeriesTimes]
) -> tuple[float, float, bool] | None:
    """Return the mean seconds per call of both sides, and whether the means are GPU times.

    If both sides have GPU times but too few, return None: host times of asynchronous calls measure
    only the launch.
    """
    there = all(sum(one.gpu_count for one in side) for side in (mine, theirs))
    counts = [
        sum(one.gpu_count if there else one.latency_count for one in side)
        for side in (mine, theirs)
    ]
    if min(counts) < MIN_CALLS:
        return None
    sums = [
        sum(one.gpu_sum if there else one.latency_sum for one in side) for side in (mine, theirs)
    ]
    means = sums[0] / counts[0], sums[1] / counts[1]
    return None if max(means) > MAX_CALL_S else (*means, there)
