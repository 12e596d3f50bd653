"""A function that reaches its recompile limit: 20 further shapes run eager, and torch logs nothing
about them."""

import torch

torch._dynamo.config.recompile_limit = 4


@torch.compile(backend="eager", dynamic=False)
def unpadded(x: torch.Tensor) -> torch.Tensor:
    return x * 2


for length in range(2, 7):
    unpadded(torch.ones(length))
for length in range(100, 120):
    unpadded(torch.ones(length))
