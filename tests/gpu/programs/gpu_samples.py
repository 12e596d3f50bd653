"""Calls a compiled function from some threads for a while and prints one line of JSON per cell with
the program's own counts.

`python gpu_samples.py SECONDS THREADS,... MODE,... MS,...`, with MODE `wait` (each call waits for
the GPU) or `ahead` (the host runs two calls ahead of the GPU) and MS the milliseconds of a call.
Each cell is a separate region: `THREADS MODE MS`. The agent records to a file, and the program also
prints the agent's counts for each window of a cell: calls and samples of GPU time."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import compilewatch
import torch

WINDOW_S = 10.0
SIZE = 4096


def times_of(milliseconds: float) -> int:
    """Number of matrix products that take this time."""
    x = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    for _ in range(20):
        x @ x
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(200):
        x @ x
    torch.cuda.synchronize()
    return max(1, round(milliseconds / 1e3 / ((time.perf_counter() - began) / 200)))


def step_of(products: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(products):
            x = x @ w
        return x

    return step


def call_for(
    seconds: float, mode: str, step: Callable[..., torch.Tensor], counts: list[int]
) -> None:
    """The work of one thread, on its own stream."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        x, w = (
            torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) / SIZE**0.5
            for _ in range(2)
        )
        ends: list[torch.cuda.Event] = []
        until, calls = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            step(x, w)
            calls += 1
            end = torch.cuda.Event(blocking=True)
            end.record()
            ends.append(end)
            while len(ends) > (0 if mode == "wait" else 2):
                ends.pop(0).synchronize()
        stream.synchronize()
    counts.append(calls)


def run_cell(seconds: float, threads: int, mode: str, milliseconds: float) -> dict[str, object]:
    torch._dynamo.reset()
    name = f"{threads} {mode} {milliseconds:g}"
    step = compilewatch.compile(step_of(times_of(milliseconds)), name=name)
    x = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) / SIZE**0.5
    with torch.no_grad():
        step(x, x)
    torch.cuda.synchronize()
    counts: list[int] = [1]
    workers = [
        threading.Thread(target=call_for, args=(seconds, mode, step, counts))
        for _ in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {"cell": name, "program": sum(counts)}


def main() -> None:
    seconds, threads, modes, lengths = (
        float(sys.argv[1]),
        *(word.split(",") for word in sys.argv[2:5]),
    )
    path = Path(tempfile.mkdtemp()) / "reports.jsonl"
    compilewatch.init(
        model="samples",
        version="1",
        endpoint=f"file:{path}",
        interval=float(os.environ.get("WINDOW", WINDOW_S)),
    )
    cells = [
        run_cell(seconds, int(count), mode, float(ms))
        for count in threads
        for mode in modes
        for ms in lengths
    ]
    compilewatch.shutdown()
    windows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    reports = [json.loads(line) for line in path.read_text().splitlines()]
    for report in (one for request in reports for one in request["reports"]):
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for region in report.get("regions", []):
            found[region["name"]][0] += region["calls"]
            found[region["name"]][1] += (region.get("gpu") or {}).get("count", 0)
        for name, (calls, samples) in found.items():
            windows[name].append((calls, samples))
    for cell in cells:
        name = str(cell["cell"])
        cell["agent"] = sum(calls for calls, _ in windows[name])
        cell["windows"] = windows[name]
        print(json.dumps(cell), flush=True)
    print(json.dumps({"gpu_time": reports[-1]["instance"]["capabilities"]["gpu_time"]}))


if __name__ == "__main__":
    main()
