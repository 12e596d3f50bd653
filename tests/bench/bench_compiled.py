"""Cost that `watch` adds to a real compiled function (inductor, CPU), measured alternately with the
bare function and with prometheus_client around the function."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import compilewatch
import torch
from compilewatch.agent import AGENT

from tests.bench.peers import prometheus, timed
from tests.bench.table import Row, show

ROUNDS, ROUND_SECONDS = 61, 0.02
SHARE, GOAL_FROM_US = 1.0, 55.0
"""Maximum added percent of a step with at least this length. A shorter step is only shown next to
the peer."""
WIDTHS = (64, 512)


def per_call(fn: Callable[..., Any], tensor: torch.Tensor, calls: int) -> float:
    """Microseconds of one call in a loop."""
    began = time.perf_counter_ns()
    for _ in range(calls):
        fn(tensor)
    return (time.perf_counter_ns() - began) / calls / 1e3


def layers(width: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function with four layers."""
    weights = [torch.randn(width, width) / width**0.5 for _ in range(4)]

    def forward(x: torch.Tensor) -> torch.Tensor:
        for weight in weights:
            x = torch.relu(x @ weight)
        return x

    return forward


def rows_of(width: int) -> list[Row]:
    """The median cost that each method adds, measured in the same rounds."""
    tensor = torch.randn(8, width)
    bare = torch.compile(layers(width))
    ways = {
        "ours": compilewatch.watch(bare, name=f"mlp {width}"),
        "peer": timed(bare, prometheus()),
    }
    for fn in (bare, *ways.values()):
        per_call(fn, tensor, 20)
    calls = max(1, int(ROUND_SECONDS * 1e6 / per_call(bare, tensor, 50)))
    base, added = [], {name: [] for name in ways}
    for number in range(ROUNDS):
        turn = [("bare", bare), *ways.items()]
        found = {
            name: per_call(fn, tensor, calls)
            for name, fn in turn[number % 3 :] + turn[: number % 3]
        }
        base.append(found["bare"])
        for name in ways:
            added[name].append(found[name] - found["bare"])
    step, ours, peer = (
        statistics.median(base),
        statistics.median(added["ours"]),
        statistics.median(added["peer"]),
    )
    what, goal = f"a compiled step of {step:.0f} us", SHARE if step >= GOAL_FROM_US else None
    return [
        Row(f"added to {what}", "us", ours, peer, "prometheus_client"),
        Row(
            f"share of {what}", "%", ours / step * 100, peer / step * 100, "prometheus_client", goal
        ),
    ]


def main() -> int:
    """Prints the table; 1 if a goal is missed."""
    torch.set_num_threads(1)
    if not compilewatch.init(model="bench", endpoint="file:/dev/null", interval=10.0):
        return 2
    rows = [row for width in WIDTHS for row in rows_of(width)]
    AGENT.stop()
    return show(rows)


if __name__ == "__main__":
    sys.exit(main())
