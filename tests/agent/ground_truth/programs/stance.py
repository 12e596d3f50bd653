"""Compiled code that runs eager for a while, requested by a stance and by `disable`, and a frame
with nothing to compile."""

import torch


@torch.compile(backend="eager")
def step(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.compile(backend="eager")
def nothing(x: int) -> int:
    return x + 1


@torch.compiler.disable
def untouched(x: torch.Tensor) -> torch.Tensor:
    return x - 1


@torch.compile(backend="eager")
def around(x: torch.Tensor) -> torch.Tensor:
    return untouched(x * 2) + 1


step(torch.ones(4))
with torch.compiler.set_stance("force_eager"):
    for _ in range(3):
        step(torch.ones(4))
with torch.compiler.set_stance("eager_on_recompile"):
    step(torch.ones(4, dtype=torch.float64))
for _ in range(2):
    nothing(3)
    around(torch.ones(4))
