"""A golden batch that passes within TF32's rounding is repeated with TF32 off: a confirmed fault
fails the batch, a doubtful fault is a finding. An operator on the CPU takes the place of cuDNN's
convolution and reads the same switch; `tests/gpu/programs/golden_models.py` runs cuDNN itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.numerics import golden_runs, tf32, tf32_rerun, tolerance
from compilewatch.numerics.tf32 import round_operand
from compilewatch.wire.messages import Report
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.testing import CompileCounter
from torch._inductor.codegen.cpp import CppOverrides, CppVecOverrides

Window = Callable[[], Report]
KIND = "golden_hidden_by_tf32"
SMALL = 3e-4
"""A relative fault: less than the rounding of a TF32 product, more than that of float32."""


@torch.library.custom_op("stand_in::convolution", mutates_args=())
def convolution(x: Tensor, weight: Tensor) -> Tensor:
    """A product in the precision that cuDNN's switch allows at this call."""
    if torch.backends.cudnn.conv.fp32_precision == "tf32":
        x, weight = round_operand(torch, x), round_operand(torch, weight)
    return x.double().mm(weight.double()).to(x.dtype)


@convolution.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], weight.shape[1])


def model(x: Tensor) -> Tensor:
    return torch.exp(convolution(x, x.t()) / 16.0)


@pytest.fixture(autouse=True)
def _cpu_rounds_as_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    def is_rough(torch: Any, tensor: Any) -> bool:
        return tensor.dtype is torch.float32 and bool(tf32._rounded_operations(torch))

    for module in (golden_runs, tolerance, tf32_rerun):
        monkeypatch.setattr(module, "is_rough", is_rough)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    yield
    assert (
        torch.backends.cudnn.conv.fp32_precision
        == torch.backends.cudnn.rnn.fp32_precision
        == "tf32"
    )
    torch._dynamo.reset()


@pytest.fixture
def batch() -> Tensor:
    return torch.randn(64, 64, generator=torch.Generator().manual_seed(3))


def findings(window: Window) -> list[str]:
    return [one.text for one in window().findings if one.kind == KIND]


def off_by_a_little(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
    """A third-party compiler whose results are slightly too large."""

    def compile_graph(inner: torch.fx.GraphModule, _: Any) -> Any:
        return lambda *args: tuple(one * (1.0 + SMALL) for one in inner(*args))

    return aot_autograd(fw_compiler=compile_graph)(graph, inputs)


def test_a_healthy_batch_passes_without_another_compilation(window: Window, batch: Tensor) -> None:
    counter = CompileCounter()
    compiled = torch.compile(model, backend=counter)
    compiled(batch)
    assert compilewatch.golden("healthy", compiled, batch).state == "passed"
    assert (counter.frame_count, findings(window)) == (1, [])


def test_a_fault_of_the_compiler_that_tf32_hides_fails(
    window: Window, batch: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for overrides in (CppOverrides, CppVecOverrides):
        right = overrides.exp
        monkeypatch.setattr(
            overrides,
            "exp",
            staticmethod(
                lambda x, right=right: f"({right(x)} * decltype({right(x)})({1 + SMALL}f))"
            ),
        )
    found = compilewatch.golden("hidden", torch.compile(model), batch)
    assert (found.state, findings(window)) == ("failed", [])
    assert found.text.startswith("with TF32 off output is off by ")


def test_a_fault_that_cannot_be_compiled_again_is_a_finding(window: Window, batch: Tensor) -> None:
    found = compilewatch.golden("doubtful", torch.compile(model, backend=off_by_a_little), batch)
    assert found.state == "passed"
    (text,) = findings(window)
    assert text.startswith("doubtful: passes, but with TF32 off output is off by ")


def test_code_that_rounds_despite_the_switch_is_not_compared_further(
    window: Window, batch: Tensor
) -> None:
    def replay(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        answer = tuple(one * (1.0 + SMALL) for one in graph(*inputs))
        return lambda *_: answer

    compiled = torch.compile(model, backend=replay)
    compiled(batch)
    assert compilewatch.golden("recorded", compiled, batch).state == "passed"
    assert findings(window) == []


def test_with_products_in_tf32_the_switch_is_not_changed(
    window: Window, batch: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        assert (
            compilewatch.golden(
                "products", torch.compile(model, backend=off_by_a_little), batch
            ).state
            == "passed"
        )
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    assert findings(window) == []
