"""A compiled function that raises an error of its own, inside the traced code and outside of it."""

import contextlib

import torch


@torch.compile(backend="eager")
def strict(x: torch.Tensor, limit: int) -> torch.Tensor:
    if x.shape[0] > limit:
        raise ValueError("too long")
    return x * 2


for limit in (8, 2, 8):
    with contextlib.suppress(ValueError):
        strict(torch.ones(4), limit)
