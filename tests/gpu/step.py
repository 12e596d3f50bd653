"""What watching adds to a short step: an MLP of four layers replayed as a CUDA graph, bare and watched in turn.

`python tests/gpu/step.py` prints one line of JSON: microseconds of the bare step, and what each part adds to it."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import compilewatch
import torch
from compilewatch.client import CLIENT
from compilewatch.recorder import RECORDER
from compilewatch.sources.compiled_calls import CompiledCalls

CALLS, ROUNDS = 250, 150
Step = Callable[[torch.Tensor], torch.Tensor]
S = TypeVar("S")


def microseconds(step: Step, x: torch.Tensor) -> float:
    """Of one call in a row of them, until the GPU is done with all."""
    torch.cuda.synchronize()
    began = time.perf_counter_ns()
    for _ in range(CALLS):
        step(x)
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - began) / CALLS / 1e3


def quiet(ways: dict[str, Callable[[], float]]) -> dict[str, float]:
    """All ways in a new order in every round, and of each the lowest tenth: what else the machine does only ever adds."""
    seen: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in random.sample(list(ways.items()), len(ways)):
            seen[name].append(way())
    return {name: sorted(values)[ROUNDS // 10] for name, values in seen.items()}


def source(kind: type[S]) -> S:
    """The installed source of this class."""
    return next(one for one in CLIENT.sources._installed if isinstance(one, kind))


def model() -> torch.nn.Module:
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers).cuda().eval()


def measure(compiled: Step, watched: Step, x: torch.Tensor) -> dict[str, float]:
    """Microseconds of a call: bare, watched, and with what is switched on for a part of the time."""
    hook, line = source(CompiledCalls), RECORDER._all_lines[0]
    probe = line.probe
    hook.poll = lambda *_: None  # type: ignore[method-assign]

    def way(step: Step, hooked: bool, timed: bool, each: bool = False) -> Callable[[], float]:
        def once() -> float:
            line.probe = probe if timed else None
            line.sampling.skip = None if each or line.sampling.every == 1 else 0
            hook._leave_slot()
            if hooked:
                hook._take_slot()
            return microseconds(step, x)

        return once

    return quiet(
        {
            "bare": way(compiled, False, False),
            "watched": way(watched, False, False),
            "watched, each call timed": way(watched, False, False, each=True),
            "and GPU time": way(watched, False, True),
            "and guard lookups": way(watched, True, False),
            "all": way(watched, True, True),
        }
    )


def main() -> int:
    """Prints the line."""
    assert compilewatch.init(model="bench", version="1", endpoint="file:/dev/null", interval=10.0)
    compiled = torch.compile(model(), mode="reduce-overhead")
    watched = compilewatch.watch(compiled, name="step")
    x = torch.randn(16, 512, device="cuda")
    with torch.inference_mode():
        for _ in range(50):
            watched(x)
        time.sleep(2.5)  # the agent's thread meets CUDA
        found = measure(compiled, watched, x)
    assert RECORDER.internal_errors == 0, RECORDER.last_error
    base, gpu = found["bare"], RECORDER._all_lines[0].region.gpu
    shares = {name: round(100 * (value / base - 1), 2) for name, value in found.items() if name != "bare"}
    # Guard lookups are counted one second in ten.
    usual = 0.9 * shares["and GPU time"] + 0.1 * shares["all"]
    said = {
        "bare_us": round(base, 2),
        "added_percent": shares,
        "watched_percent": shares["watched"],
        "usual_percent": round(usual, 2),
        "timed_one_in": RECORDER._all_lines[0].sampling.every,
        "samples": gpu.count if gpu else 0,
    }
    print(json.dumps(said))
    compilewatch.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
