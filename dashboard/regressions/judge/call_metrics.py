"""Call metrics: the values that the metrics read from a minute of calls."""

from __future__ import annotations

import math

from scipy.special import ndtri

from dashboard.regressions.judge.inputs import InstanceMinute

TAIL = 0.99
TAIL_CALLS = 20
"""Minimum number of calls per minute for a p99. Fewer calls contain too little information about
the slowest percent."""
MAX_STRETCHED_CALLS = 1000


def expected_p99_sigmas(calls: int) -> float:
    """Expected position of the sample p99 of `calls` normal values, in standard deviations (Blom's
    approximation). Below 100 calls the p99 is the largest value."""
    rank = -(-99 * calls // 100)
    return float(ndtri((rank - 0.375) / (calls + 0.25)))


STRETCH = tuple(
    float(ndtri(TAIL)) / expected_p99_sigmas(calls) if calls >= TAIL_CALLS else 1.0
    for calls in range(MAX_STRETCHED_CALLS)
)


def stretch_tail(middle: float | None, slowest: float | None, calls: int) -> float | None:
    """Corrects the p99 of few calls to the p99 of many. A minute with few calls rarely contains a
    slow one, so its raw p99 would favour the version with less traffic."""
    if (
        middle is None
        or slowest is None
        or calls >= MAX_STRETCHED_CALLS
        or not 0.0 < middle < slowest
    ):
        return slowest
    try:
        return float(middle * (slowest / middle) ** STRETCH[max(calls, 0)])
    except OverflowError:
        return math.inf


def wall_middle(row: InstanceMinute) -> float | None:
    """p50 of the callers' wait; of steady calls unless both versions separate stalled ones."""
    return _at_most(row, row.p50 if row.caller_p50 is None else row.caller_p50)


def wall_tail(row: InstanceMinute) -> float | None:
    """p99 of the callers' wait. A value from an engine's buckets is not corrected for few calls,
    because its p50 also lies in a bucket."""
    slowest = row.p99 if row.caller_p99 is None else row.caller_p99
    return (
        stretch_tail(wall_middle(row), slowest, row.calls)
        if row.bounds is None
        else _at_most(row, slowest)
    )


def _at_most(row: InstanceMinute, value: float | None) -> float | None:
    """The value, or the end of an engine's first bucket if the level lies below. Without the
    substitute, only slow minutes would be compared."""
    return row.bounds[0] if value is None and row.bounds and row.calls > 0 else value


def wall_tail_calls(row: InstanceMinute) -> int:
    """Number of calls behind the p99; 0 if too few."""
    return row.calls if row.calls >= TAIL_CALLS else 0


def gpu_tail(row: InstanceMinute) -> float | None:
    """p99 of the sampled GPU time."""
    return stretch_tail(row.gpu_p50, row.gpu_p99, row.gpu_count)


def gpu_tail_calls(row: InstanceMinute) -> int:
    """Number of samples behind the p99; 0 if too few."""
    return row.gpu_count if row.gpu_count >= TAIL_CALLS else 0


def items_per_second(row: InstanceMinute) -> float | None:
    """Items divided by the total time of calls. Calls per minute would measure traffic."""
    if row.items is None or row.latency_sum <= 0.0:
        return None
    # One compilation takes as long as thousands of calls. The time of stalled calls is a separate
    # metric.
    return row.items * (1.0 - (row.stalled or 0) / row.calls) / row.latency_sum


def known_calls(row: InstanceMinute) -> int:
    """Calls with a known execution mode."""
    return row.compiled + row.partial + row.eager


def stalled_calls(row: InstanceMinute) -> int:
    """Calls that waited for a compilation after warm-up."""
    return row.stalled or 0


def stall_known_calls(row: InstanceMinute) -> int:
    """Calls for which the agent reports whether they stalled."""
    return 0 if row.stalled is None else row.calls


def stalled_ms(row: InstanceMinute) -> int:
    """Milliseconds of stalled calls."""
    return round(1e3 * (row.stalled_sum or 0.0))


def stall_known_ms(row: InstanceMinute) -> int:
    """Milliseconds of steady and stalled calls."""
    return round(1e3 * (row.call_seconds or 0.0))


def no_causes(row: InstanceMinute) -> dict[str, int]:
    """Empty: for counts without reported causes."""
    return {}
