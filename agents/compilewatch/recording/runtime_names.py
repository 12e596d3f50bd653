"""Names of the runtimes that a region can run under, as the wire writes them."""

from __future__ import annotations

import sys

TORCH_COMPILE, EAGER, TORCHSCRIPT, AOTINDUCTOR, AOT, JAX = (
    "torch.compile",
    "eager",
    "torchscript",
    "aotinductor",
    "aot",
    "jax",
)
AHEAD = (AOTINDUCTOR, AOT)
"""What was compiled before it can be called: each call of it runs compiled, or raises."""


def usual_runtime() -> str:
    """What runs plain callables of which nothing is known yet."""
    return TORCH_COMPILE if "torch._dynamo" in sys.modules else EAGER
