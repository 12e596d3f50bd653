"""A number read out of a tensor selects the next computation."""

import torch


@torch.compile(backend="aot_eager")
def deciding(x: torch.Tensor) -> torch.Tensor:
    if x.sum().item() > 3:
        return x * 2
    return x - 1


for value in (1.0, 0.0, 1.0):
    deciding(torch.full((4,), value))
