"""Time that the agent's hooks add to real compilations (a small transformer and a small conv net
with inductor on CPU), compared with TORCH_TRACE. Each measurement runs in its own process with an
empty cache and counts processor time inside the functions that torch calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

WAYS = ("compilewatch", "TORCH_TRACE")
MODELS = ("transformer", "conv net")
GOAL = 0.0005


class Spent:
    """Sums the time inside the wrapped functions; nested calls count once."""

    def __init__(self) -> None:
        self.seconds, self._depth = 0.0, 0

    def timed(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time added to the sum."""

        def call(*args: Any, **kwargs: Any) -> Any:
            began, self._depth = time.thread_time(), self._depth + 1
            try:
                return fn(*args, **kwargs)
            finally:
                self._depth -= 1
                self.seconds += 0.0 if self._depth else time.thread_time() - began

        return call


def models() -> dict[str, Any]:
    """Each model with its input."""
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
    conv = [
        part
        for n in range(3)
        for part in (nn.Conv2d(3 if n == 0 else 8, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    ]
    return {
        MODELS[0]: (
            nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(),
            torch.rand(2, 16, 64),
        ),
        MODELS[1]: (nn.Sequential(*conv).eval(), torch.rand(1, 3, 32, 32)),
    }


def child(way: str) -> None:
    """Compiles in this process and prints the seconds of each first call and the seconds added to
    the call."""
    spent = Spent()
    import torch
    import torch._logging

    if way == "compilewatch":
        import compilewatch
        from compilewatch.sources.dynamo.compilations import Compilations

        for name in ("_on_event", "_on_record"):
            setattr(Compilations, name, spent.timed(getattr(Compilations, name)))
        assert compilewatch.init(model="bench", endpoint="file:/dev/null", interval=300.0)
    else:
        traced = spent.timed(torch._logging.trace_structured)
        torch._logging.trace_structured = torch._logging._internal.trace_structured = traced
    torch.compile(lambda x: x * 2)(torch.ones(4))  # builds inductor's precompiled headers
    found = {}
    with torch.no_grad():
        for name, (model, x) in models().items():
            before, began = spent.seconds, time.perf_counter()
            torch.compile(model)(x)
            found[name] = (time.perf_counter() - began, spent.seconds - before)
    print(json.dumps(found))


def measured(way: str) -> dict[str, tuple[float, float]]:
    """The result that a separate process prints."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache",
            "XDG_CACHE_HOME": f"{folder}/own",
        }
        if way == "TORCH_TRACE":
            environment["TORCH_TRACE"] = f"{folder}/trace"
        command = [sys.executable, "-W", "ignore", "-m", "tests.bench.bench_compile_hooks", way]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, tuple[float, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Prints the table; 1 if the goal is missed."""
    found = {way: measured(way) for way in WAYS}
    print(f"{'':16} {'':12} {'compile, ms':>12} {'added, ms':>10} {'share':>8}")
    for model in MODELS:
        for way in WAYS:
            took, added = found[way][model]
            goal = f"  goal <= {GOAL:.2%}" if way == WAYS[0] else ""
            print(
                f"{model:16} {way:12} {took * 1e3:12.0f} {added * 1e3:10.2f} "
                f"{added / took:8.3%}{goal}"
            )
    return 0 if all(added <= GOAL * took for took, added in found[WAYS[0]].values()) else 1


if __name__ == "__main__":
    if sys.argv[1:]:
        child(sys.argv[1])
    else:
        sys.exit(main())
