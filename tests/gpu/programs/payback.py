"""One process of `tests/gpu/payback.py`: `payback.py MODEL DEVICE ROLE`. Compiles a model with
random weights and, as `measure`, also compares compiled with eager calls directly, next to the
agent; prints one line of JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import compilewatch
from compilewatch.numerics import live_results, nan_check

NAME, DEVICE, ROLE = sys.argv[1:4]
compilewatch.init(model=NAME, version="1")
import torch  # noqa: E402 - after `init`, as a job does

if ROLE == "config":
    import torch._inductor.config

    torch._inductor.config.epilogue_fusion = False

GPU = DEVICE == "cuda"
ROUNDS, PHASE_SECONDS = 5, 1.5
READ_SECONDS = 1.7
"""Seconds until the agent has read the finished GPU work: it polls every second."""
live_results.REPORT_INTERVAL_S = 0.2


def built() -> tuple[Any, Any]:
    """The model, and a batch that keeps a GPU busy for milliseconds."""
    torch.manual_seed(0)
    kind = torch.bfloat16 if GPU else torch.float32
    if NAME == "gpt2":
        from transformers import GPT2Config, GPT2LMHeadModel

        sizes: dict[str, Any] = {} if GPU else {"n_embd": 64, "n_head": 4, "vocab_size": 1000}
        model = GPT2LMHeadModel(GPT2Config(n_layer=3 if GPU else 1, use_cache=False, **sizes))
        batch = torch.randint(0, 1000, (32, 512) if GPU else (2, 32))
        return model.to(DEVICE, kind).eval(), batch.to(DEVICE)
    if GPU:
        import timm

        model = timm.create_model("resnet50", pretrained=False)
    else:
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3),
            torch.nn.ReLU(),
            torch.nn.BatchNorm2d(16),
            torch.nn.Conv2d(16, 16, 3),
        )
    batch = torch.randn((128, 3, 224, 224) if GPU else (4, 3, 32, 32))
    return model.to(DEVICE, kind).eval(), batch.to(DEVICE, kind)


def wait() -> None:
    if GPU:
        torch.cuda.synchronize()


def seconds_of(call: Callable[[], Any], calls: int) -> float:
    """Seconds per call in a tight loop of `calls`, measured by CUDA events."""
    wait()
    if not GPU:
        began = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - began) / calls
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / calls


def asleep(call: Callable[[], Any]) -> tuple[float, bool]:
    """Host seconds of a call while the GPU is busy for about a third of a second, and whether the
    GPU was still busy when the call returned."""
    wait()
    if GPU:
        torch.cuda._sleep(600_000_000)
        busy = torch.cuda.Event()
        busy.record()
    began = time.perf_counter()
    call()
    took = time.perf_counter() - began
    still = GPU and not busy.query()
    wait()
    return took, still


def measured(model: Any, compiled: Any, batch: Any) -> dict[str, Any]:
    """Alternating eager and compiled phases."""
    eager_calls = max(10, int(PHASE_SECONDS / seconds_of(lambda: model(batch), 5)))
    compiled_calls = max(10, int(PHASE_SECONDS / seconds_of(lambda: compiled(batch), 5)))
    both = [
        (
            seconds_of(lambda: model(batch), eager_calls),
            seconds_of(lambda: compiled(batch), compiled_calls),
        )
        for _ in range(ROUNDS)
    ]
    mean = [sum(side) / ROUNDS for side in zip(*both, strict=True)]
    return {
        "eager": mean[0],
        "compiled": mean[1],
        "rounds": both,
        "calls": [eager_calls, compiled_calls],
    }


def shadowed(compiled: Any, batch: Any) -> dict[str, Any]:
    """Live calls, a fifth of them also in eager mode; then the host time of a sampled call, and
    whether the call waits for the GPU."""
    often = compilewatch.shadow(compiled, rate=0.2)
    until = time.perf_counter() + 4.0
    while time.perf_counter() < until:
        often(batch)
        wait()
    always = compilewatch.shadow(compiled, rate=1.0)
    for _ in range(4):
        always(batch)
    time.sleep(READ_SECONDS)
    plain, drawn = (
        [asleep(lambda: compiled(batch)) for _ in range(4)],
        [asleep(lambda: always(batch)) for _ in range(4)],
    )
    time.sleep(READ_SECONDS)
    eager = [asleep(lambda: getattr(compiled, "_orig_mod", compiled)(batch))[1] for _ in range(2)]
    host = [sorted(took for took, _ in side)[1] for side in (plain, drawn)]
    layers = compilewatch.watch(_nothing, name="n"), compilewatch.shadow(_other, rate=0.001)
    passed = [min(_passing(fn) for _ in range(3)) for fn in layers]
    return {
        "plain_host": host[0],
        "drawn_host": host[1],
        "eager_returns_while_gpu_busy": eager,
        "returned_while_gpu_busy": [still for _, still in plain + drawn],
        "added_to_others": passed[1] - passed[0],
        "added_at_a_thousandth": (host[1] - host[0]) / 1000 + passed[1] - passed[0],
    }


def _nothing(x: Any) -> Any:
    return x


_other = compilewatch.watch(lambda x: x, name="n2")


def _passing(fn: Any, calls: int = 100_000) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        fn(3)
    return (time.perf_counter() - began) / calls


def planted() -> dict[str, Any]:
    """NaN in one result, found without waiting for the GPU; and a captured graph of a callable
    whose results are all checked."""
    nan_check.SAMPLE_INTERVAL = 1
    divide = compilewatch.watch(torch.compile(lambda x: x / x), name="divide", finite=True)
    ones, zeros = torch.ones(1000, device=DEVICE), torch.zeros(1000, device=DEVICE)
    for _ in range(3):
        divide(ones)
    time.sleep(READ_SECONDS)
    took, still = asleep(lambda: divide(zeros))
    time.sleep(READ_SECONDS)
    divide(ones)
    time.sleep(READ_SECONDS)
    found = {"host": took, "returned_while_gpu_busy": still, "captured": "not tested on the CPU"}
    return {**found, "captured": _captured()} if GPU else found


def _captured() -> str:
    layer = torch.nn.Linear(64, 64, device=DEVICE)
    held = torch.ones(8, 64, device=DEVICE)
    looked = compilewatch.watch(layer, name="captured", finite=True)
    pure = compilewatch.shadow(
        compilewatch.watch(torch.compile(lambda x: layer(x)), name="captured too"), rate=1.0
    )
    wait()
    for _ in range(3):
        looked(held), pure(held)
    wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer, other = looked(held), pure(held)
        time.sleep(READ_SECONDS)  # the agent's thread reads meanwhile
    held.fill_(2.0)
    graph.replay()
    wait()
    plain = layer(held)
    same = torch.allclose(answer, plain) and torch.allclose(other, plain)
    return (
        "works"
        if same
        else f"replays another result: {answer[0, :3].tolist()} instead of {plain[0, :3].tolist()}"
    )


def main() -> None:
    model, batch = built()
    compiled = compilewatch.compile(model, name=NAME)
    results: dict[str, Any] = {
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name(0) if GPU else "",
    }
    with torch.no_grad():
        model(batch)
        wait()
        began = time.perf_counter()
        compiled(batch)
        wait()
        results["first_call"] = time.perf_counter() - began
        compilewatch.ready()
        for _ in range(3):
            compiled(batch)
        if ROLE == "measure":
            time.sleep(2.2)  # the agent checks every second whether the job has started CUDA
            results["direct"] = measured(model, compiled, batch)
            results["baseline"] = compilewatch.eager_baseline(compiled, batch, calls=50).text
            results["shadow"] = shadowed(compiled, batch)
            results["finite"] = planted() if NAME == "gpt2" else {}
    wait()
    compilewatch.shutdown()
    print(json.dumps(results))


main()
