"""A function that must be one graph and cannot be: torch raises."""

import contextlib

import torch


@torch.compile(backend="eager", fullgraph=True)
def talkative(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    print("half way")
    return x * 2


for _ in range(2):
    with contextlib.suppress(torch._dynamo.exc.Unsupported):
        talkative(torch.ones(4))
