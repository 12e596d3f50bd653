"""One function compiled again for every kind of reason: type, gradient, mode, an attribute, a
global, a number."""

import torch

FACTOR = 2


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.offset = 1

    def forward(self, x: torch.Tensor, power: int) -> torch.Tensor:
        return x**power * FACTOR + self.offset


scale = Scale()
compiled = torch.compile(scale, backend="eager", dynamic=False)
compiled(torch.ones(4), 2)
compiled(torch.ones(4, dtype=torch.float64), 2)
compiled(torch.ones(4, requires_grad=True), 2)
with torch.no_grad():
    compiled(torch.ones(4), 2)
compiled(torch.ones(4), 3)
scale.offset = 5
compiled(torch.ones(4), 2)
FACTOR = 7
compiled(torch.ones(4), 2)
