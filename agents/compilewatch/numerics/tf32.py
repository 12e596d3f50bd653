"""TF32 emulation: runs eager with the operands of products rounded to TF32's 11 significant bits.

Eager and compiled code may run different kernels for one float32 product. The default of torch is
`torch.backends.cudnn.allow_tf32 = True`: cuDNN then uses TF32 for one memory layout and full
float32 for another, and the compiler chooses layouts. On an H200 the error of a convolution was
3.6e-8 in eager (full float32) and 3.4e-5 compiled (TF32). The job's settings allow both. The error
of an eager call with rounded operands measures how large that difference may be.

Source: PyTorch's notes on numerical accuracy, "TensorFloat-32 (TF32) on Nvidia Ampere"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LOST_BITS = 13
"""TF32 keeps 10 of the 23 mantissa bits of float32. Tensor cores ignore the other bits."""
CONVOLUTIONS = {"convolution": (0, 1), "convolution_backward": (0, 1, 2), "_cudnn_rnn": (0, 1)}
PRODUCTS = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "_addmm_activation": (1, 2),
    "_scaled_dot_product_efficient_attention": (0, 1, 2),
}
"""By ATen operation: the arguments that are operands of products."""


def is_rough(torch: Any, tensor: Any) -> bool:
    """True if a GPU may have computed the tensor in TF32; cuDNN convolutions do so by default."""
    on_gpu = tensor.device.type == "cuda" and tensor.dtype in (torch.float32, torch.complex64)
    return on_gpu and bool(_rounded_operations(torch))


@contextmanager
def emulate_tf32(torch: Any) -> Iterator[None]:
    """Context that rounds the operands of products that may use TF32, on this thread."""
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
def disable_conv_tf32(torch: Any) -> Iterator[bool]:
    """Context with TF32 off in cuDNN; yields False if matrix products use TF32 too.

    torch has a guard on the setting for matrix products and would recompile."""
    cudnn = torch.backends.cudnn
    settings: list[Any] = [
        one
        for one in (getattr(cudnn, name, None) for name in ("conv", "rnn"))
        if hasattr(one, "fp32_precision")
    ]
    before: list[Any] = [one.fp32_precision for one in settings] or [cudnn.allow_tf32]
    if _rounded_operations(torch).keys() != CONVOLUTIONS.keys():
        yield False
        return
    try:
        for one in settings:
            one.fp32_precision = "ieee"
        if not settings:
            cudnn.allow_tf32 = False
        yield True
    finally:
        for one, precision in zip(settings, before, strict=False):
            one.fp32_precision = precision
        if not settings:
            cudnn.allow_tf32 = before[0]


def round_operand(torch: Any, operand: Any) -> Any:
    """Clears the bits that TF32 drops, in float32 tensors and lists of them only."""
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
    except RuntimeError:  # torch refuses the older setting after the newer one was used
        convolutions, products = (
            one.fp32_precision == "tf32" for one in (backends.cudnn.conv, backends.cuda.matmul)
        )
    return (CONVOLUTIONS if convolutions else {}) | (PRODUCTS if products else {})
