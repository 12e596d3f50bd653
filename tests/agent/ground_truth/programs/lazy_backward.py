"""A backward that is compiled only when it first runs, much later than its forward; then one with
other inputs."""

import torch


@torch.compile(backend="inductor", dynamic=False)
def energy(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() * x.exp()).sum()


waiting = [energy(torch.full((length,), 0.5, requires_grad=True)) for length in (4, 5)]
for result in waiting:
    result.backward()
