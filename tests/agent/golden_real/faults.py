"""Compilers with one fault each, which they plant in the graph of any model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

aten = torch.ops.aten


@torch.library.custom_op("golden_real::activation", mutates_args=())
def activation(x: Tensor, kind: str) -> Tensor:
    """A custom kernel that skips the tail of each row, like a kernel with a wrong mask."""
    answer = {
        "gelu": torch.nn.functional.gelu,
        "relu": torch.relu,
        "silu": torch.nn.functional.silu,
    }[kind](x).contiguous()
    answer[..., -(x.shape[-1] // 4) :] = 0.0
    return answer


@activation.register_fake
def _(x: Tensor, kind: str) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _calls(graph: fx.Graph, *targets: Any) -> Iterator[fx.Node]:
    return (node for node in graph.nodes if node.op == "call_function" and node.target in targets)


def _shape(node: Any) -> Any:
    return (
        tuple(node.meta["val"].shape)
        if isinstance(node, fx.Node) and isinstance(node.meta.get("val"), Tensor)
        else None
    )


ACTIVATIONS = {aten.gelu.default: "gelu", aten.relu.default: "relu", aten.silu.default: "silu"}


def a_wrong_custom_op(graph: fx.Graph) -> bool:
    """One activation goes through a kernel with a wrong mask."""
    for node in _calls(graph, *ACTIVATIONS):
        if node.args[1:] == () and not node.kwargs:
            node.args, node.target = (
                (node.args[0], ACTIVATIONS[node.target]),
                torch.ops.golden_real.activation.default,
            )
            return True
    return False


def a_dropped_residual(graph: fx.Graph) -> bool:
    """The last sum of two branches is replaced by one branch."""
    sums = [one for one in _calls(graph, aten.add.Tensor) if _branches(one)]
    if sums:
        sums[-1].replace_all_uses_with(sums[-1].args[1])
    return bool(sums)


def _branches(node: fx.Node) -> bool:
    both = [one for one in node.args if isinstance(one, fx.Node) and one.op == "call_function"]
    return (
        len(both) == 2
        and _shape(both[0]) == _shape(both[1]) == _shape(node)
        and len(_shape(node)) > 2
    )


NORMS = {
    aten.native_layer_norm.default: 4,
    aten._native_batch_norm_legit_no_training.default: 6,
    aten.rsqrt.default: None,
}


def another_epsilon(graph: fx.Graph) -> bool:
    """One normalisation in the middle of the model adds 0.001 to the variance instead of its
    epsilon."""
    norms = [
        one for one in _calls(graph, *NORMS) if len(one.args) > 4 or _adds_a_number(one.args[0])
    ]
    if not norms:
        return False
    node = norms[len(norms) // 2]
    inner, place = (node, NORMS[node.target]) if NORMS[node.target] else (node.args[0], 1)
    args = list(inner.args)
    args[place] = 1e-3
    inner.args = tuple(args)
    return True


def _adds_a_number(node: Any) -> bool:
    return (
        isinstance(node, fx.Node)
        and node.target in (aten.add.Tensor, aten.add.Scalar)
        and isinstance(node.args[1], float)
    )


def a_transposed_weight(graph: fx.Graph) -> bool:
    """One square weight is used without its transposition."""
    turns = (aten.t.default, aten.permute.default)
    for node in _calls(graph, aten.addmm.default, aten.mm.default):
        weight = node.args[-1]
        shape = _shape(weight)
        if (
            shape
            and shape[0] == shape[1]
            and getattr(weight, "target", None) in turns
            and weight.args[0].op == "placeholder"
        ):
            node.args = (*node.args[:-1], weight.args[0])
            return True
    return False


def sums_in_half_precision(graph: fx.Graph) -> bool:
    """One matrix product, or one convolution, accumulates in bfloat16."""
    for node in _calls(graph, aten.addmm.default, aten.mm.default, aten.convolution.default):
        dtype = node.meta["val"].dtype
        with graph.inserting_before(node):
            low = [_cast(graph, one, torch.bfloat16) for one in node.args]
            again = graph.call_function(node.target, tuple(low), node.kwargs)
            back = graph.call_function(aten._to_copy.default, (again,), {"dtype": dtype})
        node.replace_all_uses_with(back)
        return True
    return False


def _cast(graph: fx.Graph, one: Any, dtype: torch.dtype) -> Any:
    return (
        graph.call_function(aten._to_copy.default, (one,), {"dtype": dtype})
        if _shape(one) is not None
        else one
    )


SWAPPED = {
    aten.relu.default: aten.silu.default,
    aten.silu.default: aten.relu.default,
    aten.tanh.default: aten.sigmoid.default,
}


def a_swapped_activation(graph: fx.Graph) -> bool:
    """One activation is replaced by another; gelu becomes its tanh approximation."""
    for node in _calls(graph, aten.gelu.default, *SWAPPED):
        if node.target in SWAPPED:
            node.target = SWAPPED[node.target]
        else:
            node.kwargs = {
                "approximate": "none" if node.kwargs.get("approximate") == "tanh" else "tanh"
            }
        return True
    return False


FAULTS: dict[str, Callable[[fx.Graph], bool]] = {
    "a wrong custom op": a_wrong_custom_op,
    "a dropped residual": a_dropped_residual,
    "another epsilon": another_epsilon,
    "a transposed weight": a_transposed_weight,
    "sums in half precision": sums_in_half_precision,
    "a swapped activation": a_swapped_activation,
}


class Planted:
    """A backend that plants one fault in the first graph that has a place for it, or in each such
    graph: a model that keeps state at its first call serves from a later graph."""

    def __init__(self, fault: str, in_each: bool = False) -> None:
        self.done, self._in_each = False, in_each
        self._fault = FAULTS[fault]

    def backend(self) -> Any:
        """The backend for `torch.compile`."""
        return aot_autograd(fw_compiler=self._compile, inference_compiler=self._compile)

    def _compile(self, graph: fx.GraphModule, inputs: Any) -> Any:
        if self._in_each or not self.done:
            self.done |= self._fault(graph.graph)
            graph.graph.lint()
            graph.recompile()
        return make_boxed_func(graph.forward)
