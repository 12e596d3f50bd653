"""A matrix product whose kernels inductor selects by benchmarks."""

import torch

weight = torch.randn(64, 64)


@torch.compile(mode="max-autotune-no-cudagraphs", dynamic=False)
def projected(x: torch.Tensor) -> torch.Tensor:
    return (x @ weight).relu()


with torch.no_grad():
    for _ in range(3):
        projected(torch.randn(32, 64))
