"""Twelve lengths that are compiled one by one until torch reaches the limit, and twenty more that
run eager silently."""

import compilewatch
import torch

torch._dynamo.config.recompile_limit = 4


def unpadded(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * 2)


compiled = compilewatch.compile(unpadded, dynamic=False)
for length in (*range(2, 14), *range(100, 120)):
    compiled(torch.ones(length, device="cuda"))
