"""Cost that counting guard lookups adds to a compiled function that is called in a tight loop, for
a short and a long function: while lookups are counted, and averaged over the duty cycle that the
agent chooses."""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable

import compilewatch
import torch
from compilewatch.agent import AGENT
from compilewatch.recording.recorder import RECORDER
from compilewatch.sources.dynamo.duty_cycle import COUNTING_SECONDS, DutyCycle
from compilewatch.sources.dynamo.guard_lookups import CompiledCalls

ROUNDS, ROUND_SECONDS, GOAL = 60, 0.02, 0.01
Step = Callable[[torch.Tensor], torch.Tensor]


def short(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def long(x: torch.Tensor) -> torch.Tensor:
    for _ in range(8):
        x = (x @ x).tanh()
    return x


def per_call(step: Step, x: torch.Tensor, calls: int) -> float:
    """Seconds per call in a tight loop."""
    began = time.perf_counter()
    for _ in range(calls):
        step(x)
    return (time.perf_counter() - began) / calls


def measure(name: str, fn: Step, size: int) -> bool:
    """Prints one line; whether the goal is met."""
    source = next(one for one in AGENT.sources._installed if isinstance(one, CompiledCalls))
    x = torch.rand(size, size)
    step = compilewatch.watch(torch.compile(fn), name=name)
    with torch.inference_mode():
        for _ in range(5):
            step(x)
        calls = max(1, int(ROUND_SECONDS / per_call(step, x, 20)))
        bare, added = [], []
        for _ in range(ROUNDS):
            source._leave_slot()
            bare.append(per_call(step, x, calls))
            source._take_slot()
            added.append(per_call(step, x, calls) - bare[-1])
    call, more = statistics.median(bare), max(0.0, statistics.median(added))
    turns = DutyCycle(0.0)
    turns.update_cost(int(COUNTING_SECONDS / call), COUNTING_SECONDS)
    counting, period = turns.compute_durations(1.0)
    share = more / call * counting / period
    cost = f"{call * 1e6:9.1f} {more * 1e6:9.2f} {more / call:9.2%}"
    turn = f"{counting:6.1f} of {period:4.0f} s"
    print(f"{name:24} {cost} {turn} {share:9.2%}  goal <= {GOAL:.0%}")
    return share <= GOAL


def main() -> int:
    """Prints the table; 1 if the goal is missed."""
    if not compilewatch.init(model="bench", endpoint="file:/dev/null", interval=300.0):
        return 2
    RECORDER.adapt_rate = lambda: None  # type: ignore[method-assign]
    importlib.import_module("torch._dynamo")  # now the sources are installed
    for one in AGENT.sources._installed:
        if isinstance(one, CompiledCalls):
            one.poll = lambda *_: None  # type: ignore[method-assign]
    print(
        f"{'compiled function':24} {'call, us':>9} {'added':>9} {'counting':>9} "
        f"{'after a compilation':>16} {'share':>9}"
    )
    met = [measure("x + 1", short, 8), measure("8 products of 512 x 512", long, 512)]
    AGENT.stop()
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
