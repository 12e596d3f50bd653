"""A function that writes to its input: torch logs this and records no CUDA graph."""

import compilewatch
import torch


def mutated(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


compiled = compilewatch.compile(mutated, mode="reduce-overhead")
for _ in range(4):
    compiled(torch.ones(64, device="cuda"))
