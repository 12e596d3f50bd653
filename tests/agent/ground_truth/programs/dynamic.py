"""Sizes that torch makes dynamic automatically, on request, or on request from the start; compiled
by inductor."""

import torch


@torch.compile
def by_itself(x: torch.Tensor) -> torch.Tensor:
    return x.cos() + 1


@torch.compile(dynamic=True)
def from_the_start(x: torch.Tensor) -> torch.Tensor:
    return x.cos() + 2


marked = torch.ones(6, 3)
torch._dynamo.mark_dynamic(marked, 0)
for length in (4, 5, 6):
    by_itself(torch.ones(length))
    from_the_start(torch.ones(length))
torch.compile(lambda x: x.cos() + 3)(marked)
