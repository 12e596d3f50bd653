"""Compiled callables inside compiled callables: torch traces through the inner ones."""

import torch


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


@torch.compile(backend="aot_eager")
def inner(x: torch.Tensor) -> torch.Tensor:
    return x * 2


block = torch.compile(Block().requires_grad_(False), backend="aot_eager")


@torch.compile(backend="aot_eager", fullgraph=True)
def outer(x: torch.Tensor) -> torch.Tensor:
    return inner(block(x)) + 1


for _ in range(3):
    outer(torch.ones(2, 8))
inner(torch.ones(2, 8))
