"""One call with the golden batch that leaves no trace: fresh inputs, copied outputs, and the job's state as it was."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from compilewatch.errors import NotCompared

MAX_TENSORS = 20_000
"""Outputs and gradients together; what returns more is no batch to look at."""
GRAPH_RUNS = 3
"""On a GPU the first calls may warm up and record a CUDA graph; what traffic gets is what the third call gives."""


class Result(NamedTuple):
    """What came back, each tensor under the place it has; the rest has to be equal as it is."""

    outputs: dict[str, Any]
    gradients: dict[str, Any]
    rest: dict[str, Any]
    inputs_changed: bool


class Batch:
    """The inputs as they were given; every run gets copies."""

    def __init__(self, torch: Any, inputs: Any) -> None:
        self._torch = torch
        self._tree = torch.utils._pytree
        self._given = self._map(
            inputs, lambda one: one.detach().clone().requires_grad_(one.requires_grad)
        )

    @property
    def tensors(self) -> list[Any]:
        """The tensors among them."""
        return [
            one
            for one in self._tree.tree_leaves(self._given)
            if isinstance(one, self._torch.Tensor)
        ]

    def copies(self, dtype: Any = None) -> Any:
        """Fresh inputs, in another precision if one is named."""
        return self._map(self._given, lambda one: self._copy(one, dtype))

    def changed(self, used: Any) -> bool:
        """Whether a call changed the inputs that it got."""
        before = self.tensors
        after = [one for one in self._tree.tree_leaves(used) if isinstance(one, self._torch.Tensor)]
        return len(before) != len(after) or any(
            not _same(self._torch, one, two) for one, two in zip(before, after, strict=True)
        )

    def _copy(self, one: Any, dtype: Any) -> Any:
        wanted = one.dtype
        if dtype is not None and one.dtype.is_floating_point:
            wanted = dtype
        elif dtype is not None and one.dtype.is_complex:
            wanted = self._torch.promote_types(dtype, self._torch.complex64)
        return one.detach().to(dtype=wanted, copy=True).requires_grad_(one.requires_grad)

    def _map(self, inputs: Any, change: Callable[[Any], Any]) -> Any:
        return self._tree.tree_map(
            lambda one: change(one) if isinstance(one, self._torch.Tensor) else one, inputs
        )


def run(
    torch: Any, fn: Callable[..., Any], batch: Batch, module: Any, *, grads: bool, dtype: Any = None
) -> Result:
    """Calls it once, and puts the module's buffers back to what they were."""
    inputs = batch.copies(dtype)
    buffers = [] if module is None else [(one, one.detach().clone()) for one in module.buffers()]
    try:
        with torch.enable_grad() if grads else _nothing():
            answer = (
                fn(**inputs)
                if isinstance(inputs, dict)
                else fn(*inputs)
                if isinstance(inputs, tuple | list)
                else fn(inputs)
            )
            outputs, rest = leaves(torch, answer)
            changed = dtype is None and batch.changed(inputs)
            gradients = _gradients(torch, outputs, inputs, module) if grads else {}
        copied = {place: _held(torch, one) for place, one in outputs.items()}
        return Result(
            copied, {place: _held(torch, one) for place, one in gradients.items()}, rest, changed
        )
    finally:
        with torch.no_grad():
            for one, before in buffers:
                if not _same(torch, one, before):
                    one.copy_(before)


@contextmanager
def undisturbed(torch: Any, modules: list[Any]) -> Iterator[None]:
    """Puts back what calls may leave behind: random numbers, training mode, and whether gradients are recorded."""
    numpy = sys.modules.get("numpy.random")
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    drawn, own, arrays = (
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
        torch.set_rng_state(drawn)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
        random.setstate(own)
        if numpy is not None and arrays is not None:
            numpy.set_state(arrays)


def leaves(torch: Any, answer: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors of an answer, and what else is in it, by their places."""
    outputs: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    pairs = torch.utils._pytree.tree_flatten_with_path(answer)[0]
    for path, leaf in pairs:
        place = "output" + (torch.utils._pytree.keystr(path) if path else "")
        if is_dataclass(leaf) and not isinstance(leaf, type):
            inner, more = leaves(
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
        raise NotCompared(f"it returns {len(outputs):,} tensors, more than are looked at")
    return outputs, rest


def _gradients(torch: Any, outputs: dict[str, Any], inputs: Any, module: Any) -> dict[str, Any]:
    """Those of every parameter and input that asks for one, for fixed weights of the outputs; `.grad` is not touched."""
    driven = [one for one in outputs.values() if one.requires_grad]
    wanted = {
        f"input {at}": one
        for at, one in enumerate(torch.utils._pytree.tree_leaves(inputs))
        if isinstance(one, torch.Tensor)
    }
    wanted |= {} if module is None else dict(module.named_parameters())
    wanted = {place: one for place, one in wanted.items() if one.requires_grad}
    if not driven or not wanted:
        raise NotCompared(
            "no gradient: no output depends on a parameter or an input that asks for one"
        )
    found = torch.autograd.grad(
        driven, list(wanted.values()), [_weights(torch, one) for one in driven], allow_unused=True
    )
    return {
        f"the gradient of {place}": one
        for place, one in zip(wanted, found, strict=True)
        if one is not None
    }


def _weights(torch: Any, output: Any) -> Any:
    """Multiples of 1/8 that half precision holds exactly, of no order that the sum of a softmax, or a mean, would hide."""
    places = torch.arange(output.numel(), device=output.device)
    return (
        (((places * 7919) % 31 - 15).to(torch.float64) / 8.0).to(output.dtype).reshape(output.shape)
    )


def _held(torch: Any, tensor: Any) -> Any:
    """A copy that the next replay of a CUDA graph does not write over."""
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        return tensor.to_dense()
    return tensor.clone()


def _same(torch: Any, one: Any, two: Any) -> bool:
    """Whether two tensors hold the same values, NaN where the other has NaN."""
    if one.shape != two.shape or torch.equal(one, two):
        return bool(one.shape == two.shape)
    return bool(((one == two) | ((one != one) & (two != two))).all())


@contextmanager
def _nothing() -> Iterator[None]:
    yield
