"""The same failing backend, with errors suppressed: the function runs eager without a message."""

from typing import Any

import torch

torch._dynamo.config.suppress_errors = True


def failing(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    raise RuntimeError("this backend knows no sine")


@torch.compile(backend=failing)
def sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


for _ in range(3):
    sine(torch.ones(4))
