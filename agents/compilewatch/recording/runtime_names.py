"""Names of the runtimes of a region, as the wire writes them."""

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
AHEAD_OF_TIME = (AOTINDUCTOR, AOT)
"""Ahead-of-time runtimes: each call runs compiled code or raises."""


def usual_runtime() -> str:
    """The runtime assumed for plain callables until another one is known."""
    return TORCH_COMPILE if "torch._dynamo" in sys.modules else EAGER
