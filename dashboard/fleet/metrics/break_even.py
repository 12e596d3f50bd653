"""What compiled calls saved against eager ones of the same place, and from which call on that pays
for compiling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

INSTANCE_SPREAD_RATIO = 0.05
"""Healthy instances of one version differ by so much (one standard deviation)."""
Z_80_PERCENT = 1.28
MIN_CALLS = 20
MAX_CALL_S = 86400.0
"""Seconds: a mean above it is no time of calls, and would stand for all that was saved."""


class SeriesTimes(Protocol):
    """Calls of one series. The sums are seconds of those whose time was taken, on the host and on
    the GPU."""

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
    """Seconds that compiled calls took less than eager ones of the same place would have. `on_gpu`
    are the calls of which the time on the GPU is what was compared."""

    seconds: float
    low: float
    high: float
    calls: int
    on_gpu: int
    newest: int
    reference_calls: int
    versions: tuple[str, ...]


def estimate_savings(calls: Sequence[SeriesTimes], eager: Sequence[SeriesTimes]) -> Savings | None:
    """Mean against mean in the same region, shape bucket, GPU type and world size; None where no
    two can be compared. A call whose answer nobody waits for is over on the host before the GPU
    begins: where both sides have times from the GPU, those are compared."""
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
    """After how many calls what was spent is saved; None where compiled calls are not faster."""
    return spent / (saved / calls) if saved > 0 and calls else None


def _compare_means(
    mine: Sequence[SeriesTimes], theirs: Sequence[SeriesTimes]
) -> tuple[float, float, bool] | None:
    """Seconds per call of both sides, and whether they are the GPU's. Where both sides have times
    of the GPU, but too few, nothing is compared: host times of such calls say how fast they were
    begun."""
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
