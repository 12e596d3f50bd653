"""Decodes with a small Llama, as transformers compiles it automatically on a GPU, and prints one
line of JSON with the step times.

`python llm_decode.py [SECONDS]`. A step is the time from one token to the next within `generate`,
in milliseconds. With `asked` in place of SECONDS, the program prints `{}` when it is warm, then
decodes for the seconds in each line of its input. It uses two of its processors, not including the
first, which handle interrupts. Without a GPU the program compiles the forward itself, since
transformers compiles only for GPUs."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StoppingCriteria, StoppingCriteriaList

NEW_TOKENS, WARM_UP_ROUNDS = 256, 2
BEGAN, SECONDS = time.perf_counter(), "".join(sys.argv[1:2]) or "8"
GPU = torch.cuda.is_available()
SIZE = (
    {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 4}
    if GPU
    else {"hidden_size": 64, "num_hidden_layers": 2}
)


class Clock(StoppingCriteria):
    """Records the time of each token."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
        self.times.append(time.perf_counter())
        return torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device)


def agent_seconds() -> float:
    """Processor time of the agent's thread until now; 0 without the agent."""
    thread = next(
        (one for one in threading.enumerate() if one.name.startswith("compilewatch")), None
    )
    if thread is None or thread.ident is None:
        return 0.0
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def make_decoder() -> Callable[[], list[float]]:
    """Returns a function that decodes one answer and returns the seconds of its steps."""
    torch.manual_seed(0)
    device = "cuda" if GPU else "cpu"
    model = (
        LlamaForCausalLM(
            LlamaConfig(vocab_size=1000, num_attention_heads=8, num_key_value_heads=4, **SIZE)
        )
        .to(device)
        .eval()
    )
    if GPU:
        model = model.to(torch.bfloat16)
    else:
        model.forward = torch.compile(model.forward)
    prompt = torch.randint(0, 1000, (1, 16), device=device)

    def decode() -> list[float]:
        clock = Clock()
        model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            cache_implementation="static",
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            min_new_tokens=NEW_TOKENS,
            pad_token_id=0,
            stopping_criteria=StoppingCriteriaList([clock]),
        )
        return [later - sooner for sooner, later in zip(clock.times, clock.times[1:], strict=False)]

    return decode


def keep_to_two_processors() -> None:
    """Pins every thread of this process, so that differences between processors are not differences
    between programs."""
    two = set(sorted(os.sched_getaffinity(0))[2:8:4]) or os.sched_getaffinity(0)
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), two)


def measure(decode: Callable[[], list[float]], seconds: float) -> dict[str, float]:
    """The first answer is not measured: the clocks of an idle processor and GPU are low."""
    decode()
    steps: list[float] = []
    began, used = time.perf_counter(), agent_seconds()
    while time.perf_counter() - began < seconds:
        steps += decode()[5:]
    took, used = time.perf_counter() - began, agent_seconds() - used
    ordered = sorted(steps)
    times = {
        "steps": len(steps),
        "start_s": began - BEGAN,
        "median_ms": 1e3 * ordered[len(ordered) // 2],
        "tenth_ms": 1e3 * ordered[len(ordered) // 10],
        "mean_ms": 1e3 * sum(ordered) / len(ordered),
        "p99_ms": 1e3 * ordered[len(ordered) * 99 // 100],
        "agent_cpu_percent": 100 * used / took,
    }
    return {name: round(value, 4) for name, value in times.items()}


def main() -> None:
    decode = make_decoder()
    with torch.no_grad():
        for _ in range(WARM_UP_ROUNDS):
            decode()
        if SECONDS != "asked":
            time.sleep(0.5)
            print(json.dumps(measure(decode, float(SECONDS))))
            return
        keep_to_two_processors()
        print("{}", flush=True)
        for line in sys.stdin:
            print(json.dumps(measure(decode, float(line))), flush=True)


if __name__ == "__main__":
    main()
