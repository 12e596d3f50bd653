"""A print in the middle of a compiled function."""

import torch


@torch.compile(backend="aot_eager")
def talkative(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    print("half way")
    return x * 2


for _ in range(3):
    talkative(torch.ones(4))
