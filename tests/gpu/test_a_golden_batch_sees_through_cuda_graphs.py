"""Golden batches of models that run as CUDA graphs: healthy models pass, a kernel that is wrong
only in compiled code is found, and gradients are compared, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch import agent
from torch import Tensor, nn

from tests.agent.golden_real.models import of_transformers
from tests.agent.golden_real.trial import healthy

GRAPHS = {"mode": "reduce-overhead"}
MODELS = of_transformers()


@torch.library.custom_op("golden_cuda::tail", mutates_args=())
def tail(x: Tensor) -> Tensor:
    """A kernel with a wrong mask: it omits the end of each row."""
    answer = x.clone()
    answer[..., -(x.shape[-1] // 8) :] = 0.0
    return answer


@tail.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


tail.register_autograd(lambda ctx, gradient: gradient)


class Layers(nn.Module):
    """Three layers; `wrong` names the pass, forwards or backwards, in which compiled code uses the
    wrong kernel."""

    def __init__(self, wrong: str = "") -> None:
        super().__init__()
        torch.manual_seed(3)
        self.wrong, self.layers = wrong, nn.ModuleList(nn.Linear(256, 256) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for place, layer in enumerate(self.layers):
            x = torch.nn.functional.gelu(layer(x))
            if place == 1 and torch.compiler.is_compiling():
                x = tail(x) if self.wrong == "forwards" else x
                x = x + (0.01 * x - (0.01 * x).detach()) if self.wrong == "backwards" else x
        return x


@pytest.fixture
def golden(tmp_path: Path) -> Any:
    """Compares a module compiled with CUDA graphs with the uncompiled module."""
    torch._dynamo.reset()
    assert agent.init(
        model="layers",
        version="1",
        endpoint=f"file:{tmp_path / 'reports.jsonl'}",
        spool=str(tmp_path),
    )
    inputs = torch.randn(16, 256, device="cuda", generator=torch.Generator("cuda").manual_seed(5))

    def run(module: Layers, **how: Any) -> Any:
        return compilewatch.golden(
            "batch", torch.compile(module.cuda(), **GRAPHS), (inputs,), **how
        )

    yield run
    agent.shutdown()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "LlamaForCausalLM"])
def test_a_healthy_model_passes_and_its_next_version_has_the_same_result(
    tmp_path: Path, name: str, dtype: torch.dtype
) -> None:
    first, second = healthy(name, MODELS[name], tmp_path, dtype, "cuda", **GRAPHS)
    assert (first.state, second.state, second.parity.last) == ("passed", "passed", "same"), (
        first.text,
        second.text,
    )


@pytest.mark.parametrize("grads", [False, True])
def test_a_healthy_module_passes_with_and_without_gradients(golden: Any, grads: bool) -> None:
    with torch.set_grad_enabled(grads):
        found = golden(Layers(), grads=grads)
    assert found.state == "passed", found.text


def test_a_wrong_kernel_within_a_graph_is_found(golden: Any) -> None:
    with torch.no_grad():
        found = golden(Layers("forwards"))
    assert found.state == "failed" and found.parity.times > 10, found.text


def test_a_wrong_gradient_is_found_where_the_outputs_are_right(golden: Any) -> None:
    module = Layers("backwards")
    with torch.no_grad():
        assert golden(module).state == "passed"
    torch._dynamo.reset()
    found = golden(module, grads=True)
    assert found.state == "failed", found.text


def test_a_graph_returns_the_same_outputs_after_a_golden_batch(golden: Any) -> None:
    module = Layers().cuda()
    compiled, other = torch.compile(module, **GRAPHS), torch.randn(16, 256, device="cuda")
    with torch.no_grad():
        expected = module(other)
        for _ in range(3):
            compiled(other)
        assert golden(module).state == "passed"
        torch.testing.assert_close(compiled(other), expected, rtol=1e-2, atol=1e-2)
