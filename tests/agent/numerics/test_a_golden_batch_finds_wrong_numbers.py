"""A golden batch finds compilers that compute something else, and accepts compilers that only round
differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.wire.messages import Report
from torch import nn

from tests.agent import golden_models as models
from tests.machine import need

Window = Callable[[], Report]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch.manual_seed(7)
    torch._dynamo.reset()


def perceptron(backend: Any) -> Any:
    return torch.compile(models.Perceptron(), backend=backend)


FAULTS: dict[str, tuple[Callable[[], Any], tuple[int, ...], bool]] = {
    "a kernel that leaves out the tail": (
        lambda: torch.compile(models.with_a_kernel, backend="aot_eager"),
        (64, 64),
        False,
    ),
    "an addition that is dropped": (lambda: perceptron(models.drops_an_add), (16, 48), False),
    "an activation in half precision": (lambda: perceptron(models.casts_down), (16, 48), False),
    "a decomposition that is nearly right": (
        lambda: perceptron(models.decomposes_wrongly),
        (16, 48),
        False,
    ),
    "a gradient without a factor": (lambda: perceptron(models.derives_wrongly), (16, 48), True),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_compiler_that_gets_one_thing_wrong_is_found(window: Window, fault: str) -> None:
    make, shape, grads = FAULTS[fault]
    found = compilewatch.golden("g", make(), torch.randn(shape), grads=grads)
    assert (found.state, found.failed) == ("failed", True)
    assert "times the tolerance" in found.text
    assert found.parity.times is not None and found.parity.times > 2.0
    (fact,) = window().facts
    assert (fact.kind, fact.data["ok"], fact.data["state"], fact.data["text"]) == (
        "parity",
        False,
        "failed",
        found.text,
    )


def test_a_wrong_gradient_needs_gradients_to_be_found(window: Window) -> None:
    found = compilewatch.golden("g", perceptron(models.derives_wrongly), torch.randn(16, 48))
    assert (found.state, found.parity.gradients) == ("passed", 0)


BY_INDUCTOR = (("perceptron", torch.float32, 0), ("ranker", torch.bfloat16, 0))
CALM = [
    (name, dtype, seed, "inductor" if (name, dtype, seed) in BY_INDUCTOR else "aot_eager")
    for name in models.MODELS
    for dtype in (torch.float32, torch.bfloat16)
    for seed in (0, 1)
]


@pytest.mark.parametrize(("name", "dtype", "seed", "backend"), CALM)
def test_a_healthy_model_passes(
    window: Window, name: str, dtype: torch.dtype, seed: int, backend: str
) -> None:
    if backend == "inductor":
        need("a C++ compiler")
    torch.manual_seed(seed)
    kind, inputs = models.MODELS[name]
    module = kind().to(dtype)
    found = compilewatch.golden(
        name, torch.compile(module, backend=backend), inputs(dtype), grads=seed == 1
    )
    assert found.state == "passed", found.text
    assert found.parity.reference == "float64" and found.parity.outputs >= 1
    assert (found.parity.gradients > 0) == (seed == 1)
    assert found.parity.error is not None and found.parity.error > 0.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_other_precisions_pass_too(window: Window, dtype: torch.dtype) -> None:
    for name, (kind, inputs) in models.MODELS.items():
        found = compilewatch.golden(
            name, torch.compile(kind().to(dtype), backend="aot_eager"), inputs(dtype)
        )
        assert found.state == "passed", found.text
        assert found.parity.reference == ("float64" if dtype is torch.float16 else "eager")


def test_a_half_precision_result_is_compared_with_a_higher_precision(window: Window) -> None:
    # Eager's own rounding is far larger than the tolerance of float32.
    module = nn.Sequential(*(nn.Linear(64, 64) for _ in range(6))).to(torch.bfloat16)
    found = compilewatch.golden(
        "deep",
        torch.compile(module, backend="aot_eager"),
        torch.randn(32, 64, dtype=torch.bfloat16),
    )
    assert found.state == "passed"
    assert found.parity.eager_error is not None and found.parity.eager_error > 1e-4


def test_nan_only_when_compiled_fails_and_is_counted(window: Window) -> None:
    def broken(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        return lambda *args: tuple(one / 0.0 for one in graph.forward(*args))

    found = compilewatch.golden(
        "g", torch.compile(lambda x: x.abs() + 1.0, backend=broken), torch.randn(8, 8)
    )
    assert (found.state, found.parity.nonfinite, found.parity.eager_nonfinite) == ("failed", 64, 0)
    assert found.text == "64 values of output are NaN or infinite compiled and finite eager"


def test_nan_in_eager_too_is_counted_and_no_fault(window: Window) -> None:
    batch = torch.randn(8, 8).index_fill(0, torch.tensor([1]), -1.0)
    found = compilewatch.golden("g", torch.compile(torch.log, backend="aot_eager"), batch)
    assert found.state == "passed"
    assert found.parity.nonfinite == found.parity.eager_nonfinite >= 8


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda one: one.to(torch.bfloat16),
            "output is bfloat16[4, 6] compiled and float32[4, 6] eager",
        ),
        (lambda one: one[:2], "output is float32[2, 6] compiled and float32[4, 6] eager"),
    ],
)
def test_another_kind_or_shape_is_reported(
    window: Window, wrong: Callable[[Any], Any], says: str
) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        return lambda *args: tuple(wrong(one) for one in graph.forward(*args))

    found = compilewatch.golden(
        "g", torch.compile(lambda x: x * 3.0, backend=backend), torch.randn(4, 6)
    )
    assert (found.state, found.text) == ("failed", says)


def test_whole_numbers_must_be_equal(window: Window) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        return lambda *args: tuple(one + 1 for one in graph.forward(*args))

    right = compilewatch.golden(
        "right", torch.compile(lambda x: x.argmax(-1), backend="aot_eager"), torch.randn(8, 20)
    )
    wrong = compilewatch.golden(
        "wrong", torch.compile(lambda x: x.argsort(-1), backend=backend), torch.randn(8, 20)
    )
    assert (right.state, wrong.state) == ("passed", "failed")
