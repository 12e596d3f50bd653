"""What `watch` adds to a call, beside what a histogram of prometheus_client adds: short rounds in turn, and their medians."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import compilewatch
import prometheus_client
import torch
from compilewatch.client import CLIENT
from compilewatch.recorder import RECORDER

CALLS, ROUNDS = 2_000, 301
GOAL_PLAIN, GOAL_FULL = 400, 700
GOAL_RATIO, GOAL_FULL_RATIO = 0.45, 0.78
"""Nanoseconds are those of a machine on which the peer takes 900; the ratios hold on any, and decide."""


def no_op(*args: Any) -> None:
    """The job's function."""


def per_call(fn: Callable[..., Any], *args: Any) -> float:
    """Nanoseconds of one call in a loop."""
    began = time.perf_counter_ns()
    for _ in range(CALLS):
        fn(*args)
    return (time.perf_counter_ns() - began) / CALLS


def observed() -> Callable[..., Any]:
    """The peer: a clock pair around the function, and one observation."""
    histogram = prometheus_client.Histogram("bench_seconds", "A call.", registry=prometheus_client.CollectorRegistry())
    clock, observe = time.perf_counter, histogram.observe

    def timed(*args: Any) -> Any:
        start = clock()
        try:
            return no_op(*args)
        finally:
            observe(clock() - start)

    return timed


def answered(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose every call has one guard lookup that hit; what torch does for it is not ours to count."""

    def looked_up(*args: Any) -> Any:
        RECORDER.current.call.hits += 1
        return fn(*args)

    return looked_up


def measure() -> dict[str, float]:
    """Added nanoseconds per call, by way of measuring."""
    RECORDER.call()
    plain, full, peer = compilewatch.watch(no_op, name="plain"), compilewatch.watch(answered(no_op), name="full"), observed()
    bare_full, tensor = answered(no_op), torch.zeros(64, 64)
    rounds: dict[str, list[float]] = {"watch": [], "watch, bucket and accounting": [], "prometheus_client": []}
    for _ in range(ROUNDS):
        base, base_full = per_call(no_op), per_call(bare_full, tensor)
        rounds["prometheus_client"].append(per_call(peer) - base)
        rounds["watch"].append(per_call(plain) - base)
        RECORDER.count_lookups(True)
        rounds["watch, bucket and accounting"].append(per_call(full, tensor) - base_full)
        RECORDER.count_lookups(False)
        RECORDER.drain()
    return {name: statistics.median(values) for name, values in rounds.items()}


def main() -> int:
    """Prints the table; 1 if a goal is missed."""
    if not compilewatch.init(model="bench", endpoint="file:/dev/null", interval=300.0):
        return 2
    found = measure()
    CLIENT.stop()
    peer = found["prometheus_client"]
    print(f"{'added per call':32} {'ns':>6} {'ratio':>6}  goal")
    print(f"{'prometheus_client, observe':32} {peer:6.0f} {1:6.2f}")
    ratio = found["watch"] / peer
    print(f"{'watch':32} {found['watch']:6.0f} {ratio:6.2f}  <= {GOAL_PLAIN} ns and <= {GOAL_RATIO}")
    full = found["watch, bucket and accounting"]
    print(f"{'watch, bucket and accounting':32} {full:6.0f} {full / peer:6.2f}  <= {GOAL_FULL} ns and <= {GOAL_FULL_RATIO}")
    return 0 if ratio <= GOAL_RATIO and full / peer <= GOAL_FULL_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
