"""TF32 emulation: what eager gives where a GPU rounds the operands of products to the eleven digits that the job's settings allow.

Eager and compiled code of one product in float32 may run different kernels: with `torch.backends.cudnn.allow_tf32`, which is torch's
default, cuDNN takes TF32 for one layout and full float32 for another, and the compiler chooses layouts. On an H200 eager's convolution in
full float32 was off by 3.6e-8 and the compiled one in TF32 by 3.4e-5: both are what the job allows. The error of an eager call with
rounded operands says how much that may be. Source: PyTorch's notes on numerical accuracy, "TensorFloat-32 (TF32) on Nvidia Ampere"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LOST_BITS = 13
"""Of float32's 23 bits behind the point TF32 keeps ten. Tensor cores ignore the others of an operand that was not rounded before."""
CONVOLUTIONS = {"convolution": (0, 1), "convolution_backward": (0, 1, 2), "_cudnn_rnn": (0, 1)}
PRODUCTS = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "_addmm_activation": (1, 2),
    "_scaled_dot_product_efficient_attention": (0, 1, 2),
}
"""By operation of ATen: which of its arguments are operands of products."""


def is_rough(torch: Any, tensor: Any) -> bool:
    """Whether a GPU may have made this of numbers with float16's eleven digits: cuDNN's convolutions do unless told otherwise."""
    on_gpu = tensor.device.type == "cuda" and tensor.dtype in (torch.float32, torch.complex64)
    return on_gpu and bool(_rounded_operations(torch))


@contextmanager
def emulate_tf32(torch: Any) -> Iterator[None]:
    """Rounds the operands of the products whose precision the job leaves to TF32, within it, for the calling thread."""
    operations = _rounded_operations(torch)

    class Rounding(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            places = operations.get(func.overloadpacket.__name__, ())
            given = [
                round_operand(torch, one) if at in places else one for at, one in enumerate(args)
            ]
            return func(*given, **(kwargs or {}))

    with Rounding():
        yield


@contextmanager
def full_convolutions(torch: Any) -> Iterator[bool]:
    """cuDNN without TF32; false where products of matrices take TF32 too: torch guards code by that switch, and would compile again."""
    cudnn = torch.backends.cudnn
    newer: list[Any] = [
        one
        for one in (getattr(cudnn, name, None) for name in ("conv", "rnn"))
        if hasattr(one, "fp32_precision")
    ]
    before: list[Any] = [one.fp32_precision for one in newer] or [cudnn.allow_tf32]
    if _rounded_operations(torch).keys() != CONVOLUTIONS.keys():
        yield False
        return
    try:
        for one in newer:
            one.fp32_precision = "ieee"
        if not newer:
            cudnn.allow_tf32 = False
        yield True
    finally:
        for one, precision in zip(newer, before, strict=False):
            one.fp32_precision = precision
        if not newer:
            cudnn.allow_tf32 = before[0]


def round_operand(torch: Any, operand: Any) -> Any:
    """A float32 tensor without the bits that TF32 drops, or a list of them; anything else as it is."""
    if isinstance(operand, list):
        return [round_operand(torch, one) for one in operand]
    if (
        not isinstance(operand, torch.Tensor)
        or operand.dtype is not torch.float32
        or operand.layout is not torch.strided
    ):
        return operand
    return (operand.view(torch.int32) >> LOST_BITS << LOST_BITS).view(torch.float32)


def _rounded_operations(torch: Any) -> dict[str, tuple[int, ...]]:
    backends = torch.backends
    try:
        convolutions, products = backends.cudnn.allow_tf32, backends.cuda.matmul.allow_tf32
    except RuntimeError:  # a job that set the newer switch may not read the older one
        convolutions, products = (
            one.fp32_precision == "tf32" for one in (backends.cudnn.conv, backends.cuda.matmul)
        )
    return (CONVOLUTIONS if convolutions else {}) | (PRODUCTS if products else {})
