"""A program that resets torch and clears its counters between compilations."""

import torch
import torch._dynamo.utils


@torch.compile(backend="eager")
def broken(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


for length in (2, 3, 4):
    broken(torch.ones(length))
    torch._dynamo.utils.counters.clear()
    torch._dynamo.reset()
