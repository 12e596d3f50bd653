"""A graph break that the program asks for, twice in one function."""

import torch


@torch.compile(backend="aot_eager")
def stepped(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    x = x * 2
    torch._dynamo.graph_break()
    return x - 3


for _ in range(3):
    stepped(torch.ones(4))
