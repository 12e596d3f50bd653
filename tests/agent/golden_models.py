"""Small models of several kinds with random weights, and compilers with one fault each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.nn import functional as F


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(48, 96), nn.Linear(96, 48), nn.LayerNorm(48)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.norm(x + self.down(F.gelu(self.up(x))))
        return answer


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.norm, self.two = (
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.Conv2d(8, 4, 3, stride=2),
        )

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        seen = F.relu(self.norm(self.one(x)))
        return {"map": self.two(seen), "pooled": seen.mean((2, 3))}


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(32, 96), nn.Linear(32, 32), nn.LayerNorm(32)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        scores = (q @ k.transpose(-1, -2) * 32**-0.5).softmax(-1)
        return x + self.out(scores @ v), x.shape[0]


class Ranker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(50, 24), nn.Linear(24, 50)

    def forward(self, ids: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.head(torch.tanh(self.words(ids)) * weight)
        return F.cross_entropy(logits.flatten(0, 1), ids.flatten()), logits.log_softmax(-1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix, self.gate = nn.Linear(24, 24), nn.Linear(24, 24)

    def forward(self, x: Tensor) -> list[Tensor]:
        state = torch.zeros_like(x[:, 0])
        for step in range(4):
            gate = torch.sigmoid(self.gate(x[:, step]))
            state = gate * state + (1 - gate) * torch.tanh(self.mix(x[:, step] + state))
        return [state, state.exp().cumsum(-1)]


MODELS: dict[str, tuple[type[nn.Module], Callable[[torch.dtype], tuple[Tensor, ...]]]] = {
    "perceptron": (Perceptron, lambda dtype: (torch.randn(16, 48, dtype=dtype),)),
    "convolution": (Convolution, lambda dtype: (torch.randn(2, 3, 12, 12, dtype=dtype),)),
    "attention": (Attention, lambda dtype: (torch.randn(2, 16, 32, dtype=dtype),)),
    "ranker": (Ranker, lambda dtype: (torch.randint(0, 50, (4, 8)), torch.rand(24, dtype=dtype))),
    "recurrent": (Recurrent, lambda dtype: (torch.randn(4, 4, 24, dtype=dtype),)),
}


def drops_an_add(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
    """A backend that drops the residual of the first addition that it finds."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target.__name__ == "add":
            node.replace_all_uses_with(node.args[1])
            break
    graph.recompile()
    return graph.forward


def casts_down(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
    """A backend that computes one activation in half precision."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and "gelu" in str(node.target):
            with graph.graph.inserting_after(node):
                low = graph.graph.call_method("to", (node, torch.bfloat16))
            with graph.graph.inserting_after(low):
                back = graph.graph.call_method("to", (low, torch.float32))
            node.replace_all_uses_with(back)
            low.args = (node, torch.bfloat16)
            break
    graph.recompile()
    return graph.forward


def _as_it_is(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
    return make_boxed_func(graph.forward)


def _wrong_backward(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.aten.gelu_backward.default:
            node.replace_all_uses_with(node.args[0])
    graph.recompile()
    return make_boxed_func(graph.forward)


def _nearly_gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return x * torch.sigmoid(1.702 * x)


decomposes_wrongly = aot_autograd(
    fw_compiler=_as_it_is,
    bw_compiler=_as_it_is,
    decompositions={torch.ops.aten.gelu.default: _nearly_gelu},
)
derives_wrongly = aot_autograd(fw_compiler=_as_it_is, bw_compiler=_wrong_backward)


@torch.library.custom_op("golden_test::scale", mutates_args=())
def scale(x: Tensor) -> Tensor:
    """A kernel that skips the tail of a block, like a kernel with a wrong mask."""
    answer = x * 2.0
    answer.view(-1)[-1] = 0.0
    return answer


@scale.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def with_a_kernel(x: Tensor) -> Tensor:
    """Uses its own kernel when compiled, as many models do."""
    answer: Tensor = scale(x) if torch.compiler.is_compiling() else x * 2.0
    return answer.sin()
