"""A GPU may keep eleven binary digits of the factors of float32 products: a golden batch allows the
error that TF32 causes in eager, and nothing beyond."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import torch
from compilewatch.numerics.comparison import judge_result
from compilewatch.numerics.isolated_run import Batch, Result, run_isolated
from compilewatch.numerics.tf32 import emulate_tf32, is_rough, round_operand
from compilewatch.numerics.tolerance import _factor, eager_only_share
from torch import Tensor, nn

MANY = 100_000
Module = Callable[[], nn.Module]


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision
    yield
    torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision = before


def result(device: str, dtype: torch.dtype) -> SimpleNamespace:
    """The two tensor properties that the code reads: device and precision."""
    return SimpleNamespace(device=torch.device(device), dtype=dtype)


@pytest.mark.parametrize(
    ("convolutions", "products", "few_digits"),
    [("tf32", "ieee", True), ("ieee", "tf32", True), ("ieee", "ieee", False)],
)
def test_each_switch_that_a_job_may_set_is_read(
    convolutions: str, products: str, few_digits: bool
) -> None:
    torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision = (
        convolutions,
        products,
    )
    assert is_rough(torch, result("cuda", torch.float32)) is few_digits


def test_by_default_convolutions_use_tf32() -> None:
    assert is_rough(torch, result("cuda", torch.float32))


@pytest.mark.parametrize(("device", "dtype"), [("cpu", torch.float32), ("cuda", torch.float64)])
def test_other_devices_and_precisions_are_unchanged(device: str, dtype: torch.dtype) -> None:
    assert not is_rough(torch, result(device, dtype))


def test_three_times_eagers_error_is_allowed_with_tf32() -> None:
    assert (_factor(MANY, rough=True), _factor(MANY, rough=False)) == (3.0, 2.0)


def test_a_live_call_is_allowed_a_hundred_times_more_with_tf32() -> None:
    assert [
        eager_only_share(torch, result(device, torch.float32)) for device in ("cpu", "cuda")
    ] == [1e-4, 1e-2]


def test_an_operand_loses_its_last_thirteen_bits() -> None:
    one = torch.tensor([1.0 + 2**-10, 1.0 + 2**-11, -3.0 - 2**-12, float("inf")])
    assert round_operand(torch, one).tolist() == [1.0 + 2**-10, 1.0, -3.0, float("inf")]


class Convolutions(nn.Module):
    def __init__(self, activation: Callable[[Tensor], Tensor] = nn.functional.gelu) -> None:
        super().__init__()
        self.first, self.second, self.activation = (
            nn.Conv2d(3, 32, 3),
            nn.Conv2d(32, 8, 3),
            activation,
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.activation(self.first(x)))


def patches() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 64, 4, 4), nn.Flatten(2), nn.LayerNorm(16), nn.Linear(16, 64))


def depthwise() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 3, 5, groups=3), nn.ReLU(), nn.ConvTranspose2d(3, 4, 3))


def results(
    make: Module, other: Module | None = None, grads: bool = False
) -> tuple[Result, Result, Result, Result]:
    """The results of one module: in TF32 as a compiler may choose (of `other` if given), eager,
    eager in TF32, and in float64."""
    torch.manual_seed(0)
    module = make()
    wrong = (other or make)()
    wrong.load_state_dict(module.state_dict())
    batch = Batch(torch, torch.randn(4, 3, 16, 16))
    eager = run_isolated(torch, module, batch, module, grads=grads)
    with emulate_tf32(torch):
        rounded, compiled = (
            run_isolated(torch, one, batch, one, grads=grads) for one in (module, wrong)
        )
    exact = module.double()
    return (
        compiled,
        eager,
        rounded,
        run_isolated(torch, exact, batch, exact, grads=grads, dtype=torch.float64),
    )


@pytest.mark.parametrize("make", [Convolutions, patches, depthwise])
@pytest.mark.parametrize("grads", [False, True])
def test_the_tf32_error_of_a_convolution_is_allowed(make: Module, grads: bool) -> None:
    compiled, eager, rounded, exact = results(make, grads=grads)
    assert judge_result(torch, "one", compiled, eager, exact, "float64").state == "failed"
    assert judge_result(torch, "one", compiled, rounded, exact, "float64").state == "passed"
    assert (
        judge_result(torch, "one", compiled, rounded, eager, "eager").state == "passed"
    )  # without a higher precision


def test_a_fault_is_found_in_tf32_too() -> None:
    compiled, _, rounded, exact = results(Convolutions, lambda: Convolutions(nn.functional.relu))
    assert judge_result(torch, "one", compiled, rounded, exact, "float64").state == "failed"


def test_products_are_rounded_only_if_the_job_allows_it() -> None:
    one = torch.randn(64, 64)
    with emulate_tf32(torch):
        assert torch.equal(one @ one, torch.mm(one, one)), "full float32"
    plain = one @ one
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    with emulate_tf32(torch):
        assert not torch.equal(one @ one, plain)
