"""NumPy inside compiled code: what torch can trace of it, and what it cannot."""

import numpy as np
import torch


@torch.compile(backend="aot_eager")
def traced(x: np.ndarray) -> np.ndarray:
    return np.sum(x * 2, axis=0)


@torch.compile(backend="aot_eager")
def untraced(x: torch.Tensor) -> torch.Tensor:
    names = np.array(["a", "b"])
    return x * len(names)


for _ in range(3):
    traced(np.ones((4, 3), dtype=np.float32))
    untraced(torch.ones(4))
