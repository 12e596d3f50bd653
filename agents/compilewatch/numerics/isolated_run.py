"""Isolated run: one call with fresh inputs that leaves the job's state unchanged."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from compilewatch.errors import ComparisonError

MAX_TENSORS = 20_000
"""Limit for the tensors of one result."""
GRAPH_RUNS = 3
"""Calls on a GPU: the first two may warm up and record a CUDA graph, the third replays it."""


class Result(NamedTuple):
    """Result of a run: tensors by their place, and other values (`rest`), which must be equal."""

    outputs: dict[str, Any]
    gradients: dict[str, Any]
    rest: dict[str, Any]
    inputs_changed: bool


class Batch:
    """The inputs of a golden batch; each run gets copies."""

    def __init__(self, torch: Any, inputs: Any) -> None:
        self._torch = torch
        self._tree = torch.utils._pytree
        self._given = self._map(
            inputs, lambda one: one.detach().clone().requires_grad_(one.requires_grad)
        )

    @property
    def tensors(self) -> list[Any]:
        """The input tensors."""
        return [
            one
            for one in self._tree.tree_leaves(self._given)
            if isinstance(one, self._torch.Tensor)
        ]

    def copy_inputs(self, dtype: Any = None) -> Any:
        """Copies the inputs, converted to `dtype` if one is given."""
        return self._map(self._given, lambda one: self._copy(one, dtype))

    def has_changed(self, used: Any) -> bool:
        """True if a call changed the inputs that it received."""
        before = self.tensors
        after = [one for one in self._tree.tree_leaves(used) if isinstance(one, self._torch.Tensor)]
        return len(before) != len(after) or any(
            not _same(self._torch, one, two) for one, two in zip(before, after, strict=True)
        )

    def _copy(self, one: Any, dtype: Any) -> Any:
        target = one.dtype
        if dtype is not None and one.dtype.is_floating_point:
            target = dtype
        elif dtype is not None and one.dtype.is_complex:
            target = self._torch.promote_types(dtype, self._torch.complex64)
        return one.detach().to(dtype=target, copy=True).requires_grad_(one.requires_grad)

    def _map(self, inputs: Any, change: Callable[[Any], Any]) -> Any:
        return self._tree.tree_map(
            lambda one: change(one) if isinstance(one, self._torch.Tensor) else one, inputs
        )


def run_isolated(
    torch: Any, fn: Callable[..., Any], batch: Batch, module: Any, *, grads: bool, dtype: Any = None
) -> Result:
    """Calls `fn` once and restores the module's buffers."""
    inputs = batch.copy_inputs(dtype)
    buffers = [] if module is None else [(one, one.detach().clone()) for one in module.buffers()]
    try:
        with torch.enable_grad() if grads else _unchanged_grad_mode():
            answer = (
                fn(**inputs)
                if isinstance(inputs, dict)
                else fn(*inputs)
                if isinstance(inputs, tuple | list)
                else fn(inputs)
            )
            outputs, rest = split_leaves(torch, answer)
            changed = dtype is None and batch.has_changed(inputs)
            gradients = _gradients(torch, outputs, inputs, module) if grads else {}
        copied = {place: _detached_copy(torch, one) for place, one in outputs.items()}
        return Result(
            copied,
            {place: _detached_copy(torch, one) for place, one in gradients.items()},
            rest,
            changed,
        )
    finally:
        with torch.no_grad():
            for one, before in buffers:
                if not _same(torch, one, before):
                    one.copy_(before)


@contextmanager
def preserve_state(torch: Any, modules: list[Any]) -> Iterator[None]:
    """Context that restores random state, training mode and grad mode at its end."""
    numpy = sys.modules.get("numpy.random")
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    torch_state, python_state, numpy_state = (
        torch.get_rng_state(),
        random.getstate(),
        numpy.get_state() if numpy is not None else None,
    )
    training = [(part, part.training) for module in modules for part in module.modules()]
    recording = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_grad_enabled(recording)
        for part, was in training:
            part.training = was
        torch.set_rng_state(torch_state)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
        random.setstate(python_state)
        if numpy is not None and numpy_state is not None:
            numpy.set_state(numpy_state)


def split_leaves(torch: Any, answer: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits an answer into its tensors and its other values, each by its place."""
    outputs: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    pairs = torch.utils._pytree.tree_flatten_with_path(answer)[0]
    for path, leaf in pairs:
        place = "output" + (torch.utils._pytree.keystr(path) if path else "")
        if is_dataclass(leaf) and not isinstance(leaf, type):
            inner, more = split_leaves(
                torch, {field.name: getattr(leaf, field.name) for field in fields(leaf)}
            )
            outputs |= {place + key.removeprefix("output"): value for key, value in inner.items()}
            rest |= {place + key.removeprefix("output"): value for key, value in more.items()}
        elif isinstance(leaf, torch.Tensor):
            outputs[place] = leaf
        elif isinstance(leaf, float):
            outputs[place] = torch.tensor(leaf, dtype=torch.float32)
        elif isinstance(leaf, bool | int | str | None):
            rest[place] = leaf
        else:
            rest[place] = type(leaf).__name__
    if len(outputs) > MAX_TENSORS:
        raise ComparisonError(f"it returns {len(outputs):,} tensors, the limit is {MAX_TENSORS:,}")
    return outputs, rest


def _gradients(torch: Any, outputs: dict[str, Any], inputs: Any, module: Any) -> dict[str, Any]:
    """Gradients of all parameters and inputs that require one, for fixed output weights.

    `.grad` is not touched."""
    driven = [one for one in outputs.values() if one.requires_grad]
    sources = {
        f"input {at}": one
        for at, one in enumerate(torch.utils._pytree.tree_leaves(inputs))
        if isinstance(one, torch.Tensor)
    }
    sources |= {} if module is None else dict(module.named_parameters())
    sources = {place: one for place, one in sources.items() if one.requires_grad}
    if not driven or not sources:
        raise ComparisonError(
            "no gradient: no output depends on a parameter or an input that requires one"
        )
    found = torch.autograd.grad(
        driven, list(sources.values()), [_weights(torch, one) for one in driven], allow_unused=True
    )
    return {
        f"the gradient of {place}": one
        for place, one in zip(sources, found, strict=True)
        if one is not None
    }


def _weights(torch: Any, output: Any) -> Any:
    """Fixed weights: multiples of 1/8, which half precision holds exactly.

    Their order is irregular, because a softmax or a mean would cancel equal weights."""
    places = torch.arange(output.numel(), device=output.device)
    return (
        (((places * 7919) % 31 - 15).to(torch.float64) / 8.0).to(output.dtype).reshape(output.shape)
    )


def _detached_copy(torch: Any, tensor: Any) -> Any:
    """A copy that the next replay of a CUDA graph does not overwrite."""
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        return tensor.to_dense()
    return tensor.clone()


def _same(torch: Any, one: Any, two: Any) -> bool:
    """True if two tensors hold equal values; NaN equals NaN."""
    if one.shape != two.shape or torch.equal(one, two):
        return bool(one.shape == two.shape)
    return bool(((one == two) | ((one != one) & (two != two))).all())


@contextmanager
def _unchanged_grad_mode() -> Iterator[None]:
    yield
