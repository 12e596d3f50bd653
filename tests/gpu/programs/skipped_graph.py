"""A function that writes into its input: torch says so and records no CUDA graph."""

import compilewatch
import torch


def mutated(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


compiled = compilewatch.compile(mutated, mode="reduce-overhead")
for _ in range(4):
    compiled(torch.ones(64, device="cuda"))
