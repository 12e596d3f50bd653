"""A backend that fails: the error reaches the caller, at each call."""

import contextlib
from typing import Any

import torch


def failing(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    raise RuntimeError("this backend knows no sine")


@torch.compile(backend=failing)
def sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


for _ in range(2):
    with contextlib.suppress(torch._dynamo.exc.BackendCompilerFailed):
        sine(torch.ones(4))
