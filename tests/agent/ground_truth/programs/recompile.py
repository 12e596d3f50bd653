"""Static shapes: each new length is compiled again, and known ones are not."""

import torch


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 3


compiled = torch.compile(scaled, backend="eager", dynamic=False)
for length in (2, 3, 4, 5, 2, 3):
    compiled(torch.ones(length))
