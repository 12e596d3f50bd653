"""An operator of the program's own, with a fake kernel and a backward."""

from typing import Any

import torch


@torch.library.custom_op("ground_truth::cubed", mutates_args=())
def cubed(x: torch.Tensor) -> torch.Tensor:
    return x.clone() ** 3


@cubed.register_fake
def _shape_of(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def _backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
    (x,) = context.saved_tensors
    return gradient * 3 * x**2


cubed.register_autograd(
    _backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0])
)


@torch.compile(backend="aot_eager", fullgraph=True)
def model(x: torch.Tensor) -> torch.Tensor:
    return cubed(x.sin()).sum()


for _ in range(3):
    model(torch.ones(4, requires_grad=True)).backward()
