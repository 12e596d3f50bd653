"""A job that counts its own calls: `python -m tests.flow.counting_job KIND`; two threads call at
once, then the shape changes."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import compilewatch
import torch

KINDS = ("shapes", "fallback", "dropped")
"""Code that compiles for each shape; a shape that fails to compile and runs eager; a model whose
compiled form is dropped."""
WARM_UP, CALLS = 4, 30
here = threading.local()
counts: Counter[str] = Counter()
counting = threading.Lock()


def backend(graph: Any, inputs: list[Any]) -> Callable[..., Any]:
    """Runs torch's graph unchanged; notes the call in which the graph is compiled and the calls in
    which it runs."""
    here.compiled = True
    if sys.argv[1] == "fallback" and any(getattr(one, "shape", (0,))[0] == 8 for one in inputs):
        raise RuntimeError("no kernel for this size")

    def run(*values: Any) -> Any:
        here.ran = True
        return graph(*values)

    return run


def call(fn: Callable[[torch.Tensor], Any], rows: int) -> None:
    """One call, classified by its events."""
    here.compiled = here.ran = False
    fn(torch.ones(rows, 4))
    with counting:
        counts["calls"] += 1
        counts["waited" if here.compiled else "compiled" if here.ran else "eager"] += 1


def score_make(kind: str) -> Callable[[torch.Tensor], Any]:
    """The function that the job calls."""
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
    compiled = torch.compile(net, backend=backend, dynamic=False)

    def score(x: torch.Tensor) -> Any:
        if kind == "dropped":
            return net(x)
        try:
            return compiled(x)
        except Exception:  # noqa: BLE001 - like services that fall back to eager
            return net(x)

    return score


def main(kind: str) -> None:
    """Prints the number of calls, and how many compiled, waited and ran eager."""
    assert compilewatch.init(model="counted", version=kind, interval=1.0)
    score = compilewatch.watch(score_make(kind), name="score")
    for _ in range(WARM_UP):
        call(score, 2)
    compilewatch.ready()
    threads = [
        threading.Thread(target=lambda: [call(score, 2) for _ in range(CALLS)]) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(CALLS):
        call(score, (2, 8, 16)[number % 3])
    compilewatch.shutdown()
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1])
