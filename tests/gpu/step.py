"""What watching adds to a short step: an MLP of four layers replayed as a CUDA graph, bare and
watched in turn.

`python tests/gpu/step.py [function]` watches a compiled module, or a compiled function that calls
it, and prints one line of JSON: microseconds of the bare step, and what each way adds to it, as the
median of the differences to the bare step of the same round, with the interval that holds this
median in 95 of 100 repetitions. The bare step is taken twice in each round, and its mean is what
the others are held against; `bare again` is the second less the first: noise. `python function` is
one that only calls on, the least that any watching can add."""

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
    """Of one call in a row of them, until the GPU is done with all."""
    torch.cuda.synchronize()
    began = time.perf_counter_ns()
    for _ in range(CALLS):
        step(x)
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - began) / CALLS / 1e3


def rounds_of(ways: dict[str, Callable[[], float]]) -> list[dict[str, float]]:
    """All ways in a new order in every round, for as long as there is time; the first rounds warm
    up."""
    until = time.monotonic() + SECONDS
    found: list[dict[str, float]] = []
    while len(found) < MOST_ROUNDS + 5 and time.monotonic() < until:
        found.append({name: way() for name, way in random.sample(list(ways.items()), len(ways))})
    return found[5:]


def median_between(values: list[float]) -> tuple[float, float, float]:
    """The median, and the order statistics that enclose the true one in 95 of 100 repetitions."""
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
    """What one round in ten is faster than: what else the machine does only ever adds."""
    return sorted(one[way] for one in rounds)[len(rounds) // 10]


def source(kind: type[S]) -> S:
    """The installed source of this class."""
    return next(one for one in AGENT.sources._installed if isinstance(one, kind))


def model() -> torch.nn.Module:
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers).cuda().eval()


def function_around(step: Step) -> Step:
    """What passes any call on."""

    def plain(*args: Any, **kwargs: Any) -> Any:
        return step(*args, **kwargs)

    return plain


def target(kind: str) -> Callable[..., Any]:
    """What is compiled and watched: the model, or a function that calls it."""
    layers = model()
    return (lambda x: layers(x)) if kind == "function" else layers


def settle(watched: Step, x: torch.Tensor) -> None:
    """Calls until the agent's thread has met CUDA, has found that the calls are short, and times
    them as seldom as in usual operation."""
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
    """Samples are as far apart as where such calls follow each other: here the probe sees two ways
    of eight, and would sample four times as often."""
    read, rate = probe.read, probe._rate

    def read_at_rate() -> None:
        read()
        probe._rate = rate

    probe.read = read_at_rate


def measure(compiled: Step, watched: Step, x: torch.Tensor) -> list[dict[str, float]]:
    """Microseconds of a call in each round: bare, watched, and with what is switched on for a part
    of the time."""
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
    """For what part of the time guard lookups are counted where such calls follow each other."""
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
    said = {
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
    print(json.dumps(said))
    compilewatch.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
