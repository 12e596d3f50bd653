"""A break inside a function that a compiled function calls at two places, and inside a function
that this function calls."""

import torch


def innermost(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def helper(x: torch.Tensor) -> torch.Tensor:
    return innermost(x) - 1


@torch.compile(backend="eager")
def outer(x: torch.Tensor) -> torch.Tensor:
    return helper(x) + helper(x * 2)


for _ in range(3):
    outer(torch.ones(4))
