"""One function, compiled by inductor, called three times."""

import torch


@torch.compile
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


for _ in range(3):
    doubled(torch.ones(8))
