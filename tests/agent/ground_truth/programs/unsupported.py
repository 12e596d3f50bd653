"""Operators that torch cannot put into a graph: one with an output of unknown size, one call into
C."""

import torch


@torch.compile(backend="aot_eager")
def selecting(x: torch.Tensor) -> torch.Tensor:
    found = torch.nonzero(x)
    return found * 2


@torch.compile(backend="aot_eager")
def addressing(x: torch.Tensor) -> int:
    y = x * 2
    return hash(str(y.untyped_storage().data_ptr()))


for _ in range(2):
    selecting(torch.tensor([0.0, 1.0, 2.0]))
    addressing(torch.ones(3))
