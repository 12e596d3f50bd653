"""Time that watching adds to a short step: an MLP of four layers replayed as a CUDA graph, bare and
watched alternately.

`python tests/gpu/step.py [function]` watches a compiled module, or a compiled function that calls
the module, and prints one line of JSON. The line contains the microseconds of the bare step and the
time that each method adds: the median of the differences to the bare step of the same round, with
the 95% interval of this median. Each round measures the bare step twice and uses the mean as its
reference; `bare again` is the second minus the first measurement: noise. `python function` only
forwards the call, which is the minimum cost of any wrapper."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import compilewatch
import torch
from compilewatch.agent import AGENT
from compilewatch.recording.recorder import RECORDER
from compilewatch.sources.dynamo.duty_cycle import MIN_LOOKUPS, SETTLING_SECONDS, DutyCycle
from compilewatch.sources.dynamo.guard_lookups import CompiledCalls

CALLS, MOST_ROUNDS, SECONDS, SETTLING_S = 100, 2000, 60.0, 4.0
BARE, AGAIN, FUNCTION = "bare", "bare again", "python function"
SKIPPED, EACH, TIMED, LOOKED_UP, ALL = (
    "watched",
    "each call timed",
    "and GPU time",
    "and guard lookups",
    "and both",
)
Step = Callable[[torch.Tensor], torch.Tensor]
S = TypeVar("S")


def microseconds(step: Step, x: torch.Tensor) -> float:
    """Microseconds per call in a sequence, until the GPU has finished all calls."""
    torch.cuda.synchronize()
    began = time.perf_counter_ns()
    for _ in range(CALLS):
        step(x)
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - began) / CALLS / 1e3


def rounds_of(ways: dict[str, Callable[[], float]]) -> list[dict[str, float]]:
    """All methods in a new order in every round, until the time is up; the first rounds warm up."""
    until = time.monotonic() + SECONDS
    found: list[dict[str, float]] = []
    while len(found) < MOST_ROUNDS + 5 and time.monotonic() < until:
        found.append({name: way() for name, way in random.sample(list(ways.items()), len(ways))})
    return found[5:]


def median_between(values: list[float]) -> tuple[float, float, float]:
    """The median, and the order statistics that enclose the true median in 95 of 100
    repetitions."""
    ordered, reach = sorted(values), 0.98 * len(values) ** 0.5
    low, high = (
        max(0, int(len(values) / 2 - reach)),
        min(len(values) - 1, int(len(values) / 2 + reach)),
    )
    return ordered[len(values) // 2], ordered[low], ordered[high]


def added(differences: list[float], base: float) -> dict[str, Any]:
    """Microseconds and percent of the bare step, each with its interval."""
    found = median_between(differences)
    return {
        "us": round(found[0], 3),
        "percent": round(100 * found[0] / base, 2),
        "between": [round(100 * one / base, 2) for one in found[1:]],
    }


def tenth(rounds: list[dict[str, float]], way: str) -> float:
    """The 10th percentile of the rounds: other load of the machine only ever adds time."""
    return sorted(one[way] for one in rounds)[len(rounds) // 10]


def source(kind: type[S]) -> S:
    """The installed source of this class."""
    return next(one for one in AGENT.sources._installed if isinstance(one, kind))


def model() -> torch.nn.Module:
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers).cuda().eval()


def function_around(step: Step) -> Step:
    """A function that forwards any call."""

    def plain(*args: Any, **kwargs: Any) -> Any:
        return step(*args, **kwargs)

    return plain


def target(kind: str) -> Callable[..., Any]:
    """The compiled and watched callable: the model, or a function that calls the model."""
    layers = model()
    return (lambda x: layers(x)) if kind == "function" else layers


def settle(watched: Step, x: torch.Tensor) -> None:
    """Calls until the agent's thread has detected CUDA, has detected that the calls are short, and
    times them as rarely as in normal operation."""
    watched(x)
    until = time.monotonic() + 10.0
    while time.monotonic() < until and (
        RECORDER._all_buffers[0].sampling.calls_per_timed == 1
        or RECORDER._all_buffers[0].probe is None
    ):
        watched(x)
    until = time.monotonic() + SETTLING_S
    while time.monotonic() < until:
        watched(x)


def keep_rate(probe: Any) -> None:
    """Keeps the sampling interval of normal operation: here the probe sees two of eight methods,
    and would sample four times as often."""
    read, rate = probe.read, probe._rate

    def read_at_rate() -> None:
        read()
        probe._rate = rate

    probe.read = read_at_rate


def measure(compiled: Step, watched: Step, x: torch.Tensor) -> list[dict[str, float]]:
    """Microseconds of a call in each round: bare, watched, and with the features that are active
    for a part of the time."""
    hook, line = source(CompiledCalls), RECORDER._all_buffers[0]
    probe, every = line.probe, line.sampling.calls_per_timed
    hook.poll = lambda *_: None  # type: ignore[method-assign]
    keep_rate(probe)

    def way(
        step: Step, hooked: bool = False, timed: bool = False, each: bool = False
    ) -> Callable[[], float]:
        def once() -> float:
            line.probe = probe if timed else None
            line.sampling.stop()
            if not each:
                line.sampling.calls_per_timed = every
                line.sampling.draw_skips()
            hook._leave_slot()
            if hooked:
                hook._take_slot()
            return microseconds(step, x)

        return once

    plain = function_around(compiled)
    return rounds_of(
        {
            BARE: way(compiled),
            AGAIN: way(compiled),
            FUNCTION: way(plain),
            SKIPPED: way(watched),
            EACH: way(watched, each=True),
            TIMED: way(watched, timed=True),
            LOOKED_UP: way(watched, hooked=True),
            ALL: way(watched, hooked=True, timed=True),
        }
    )


def counting_share(call_seconds: float) -> float:
    """Share of the time in which guard lookups are counted for calls of this duration."""
    turns = DutyCycle(0.0)
    turns.update_cost(MIN_LOOKUPS, MIN_LOOKUPS * call_seconds)
    counting, period = turns.compute_durations(2 * SETTLING_SECONDS)
    return counting / period


def main() -> int:
    """Prints the line."""
    assert compilewatch.init(model="bench", version="1", endpoint="file:/dev/null", interval=10.0)
    kind = "".join(sys.argv[1:2]) or "module"
    compiled = torch.compile(target(kind), mode="reduce-overhead")
    watched = compilewatch.watch(compiled, name="step")
    x = torch.randn(16, 512, device="cuda")
    with torch.inference_mode():
        settle(watched, x)
        every = RECORDER._all_buffers[0].sampling.calls_per_timed
        rounds = measure(compiled, watched, x)
    assert RECORDER.internal_error_count == 0, RECORDER.last_error
    line = RECORDER._all_buffers[0]
    base = median_between([(one[BARE] + one[AGAIN]) / 2 for one in rounds])[0]
    differences = {
        name: [one[name] - (one[BARE] + one[AGAIN]) / 2 for one in rounds]
        for name in rounds[0]
        if name not in (BARE, AGAIN)
    }
    differences[AGAIN] = [one[AGAIN] - one[BARE] for one in rounds]
    share = counting_share(base / 1e6)
    usual = added(
        [
            (1 - share) * timed + share * both
            for timed, both in zip(differences[TIMED], differences[ALL], strict=True)
        ],
        base,
    )
    results = {
        "watched": kind,
        "bare_us": round(base, 2),
        "rounds": len(rounds),
        "added": {name: added(values, base) for name, values in differences.items()},
        "lowest_tenth_percent": {
            name: round(100 * (tenth(rounds, name) / tenth(rounds, BARE) - 1), 2)
            for name in differences
        },
        "watched_percent": added(differences[SKIPPED], base)["percent"],
        "usual": usual,
        "lookups_counted_share": round(share, 4),
        "usual_percent": usual["percent"],
        "timed_one_in": every,
        "samples": line.region.gpu.count if line.region.gpu else 0,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }
    print(json.dumps(results))
    compilewatch.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
