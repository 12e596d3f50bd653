"""Call fingerprint: identifies the modules and tensors of a call without keeping them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MethodType
from typing import Any, NamedTuple

from compilewatch.runtime.torch_internals import MODULE, TENSOR

MAX_VARIABLES = 64


class Inputs(NamedTuple):
    """Fingerprint of a call. Two calls of one layer with tensors of the same properties are
    equal."""

    modules: tuple[int, ...] = ()
    """Identity of each module: layers with the same code differ here."""
    tensors: frozenset[tuple[str, str]] = frozenset()
    """Shape, dtype and `requires_grad` of each tensor, each with the name of the variable."""

    def similarity_to(self, other: Inputs) -> tuple[bool, int]:
        """Sort key of similarity: the same modules first, then the number of equal properties."""
        return self.modules == other.modules, len(self.tensors & other.tensors)


NO_INPUTS = Inputs()


def sizes_of(value: Any) -> tuple[int, ...]:
    """Return the sizes of a tensor; empty for other values and for tensors without a shape."""
    tensor = TENSOR.find()
    with suppress(Exception):  # a tensor subclass may raise
        if isinstance(tensor, type) and issubclass(type(value), tensor):
            return tuple(value.shape)
    return ()


def inputs_of(variables: Mapping[str, Any]) -> Inputs:
    """Return the fingerprint of a frame's variables, including one level of tuples, lists and
    dictionaries."""
    modules: list[int] = []
    tensors: list[tuple[str, str]] = []
    tensor, module = TENSOR.find(), MODULE.find()
    if not (isinstance(tensor, type) and isinstance(module, type)):
        return NO_INPUTS
    for name, value in itertools.islice(_variables(variables), MAX_VARIABLES):
        # Reads types only: `isinstance` reads `__class__`, which may run code of the job.
        if issubclass(type(value), module):
            modules.append(id(value))
        elif issubclass(type(value), tensor):
            with suppress(Exception):  # a tensor subclass may raise
                properties = str(sizes_of(value)), str(value.dtype), f"grad {value.requires_grad}"
                tensors += [(name, value_text) for value_text in properties]
    return Inputs(tuple(modules), frozenset(tensors))


def _variables(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in variables.items():
        if type(value) is MethodType:
            yield name, value.__self__
        elif type(value) in (tuple, list):
            yield from (
                (f"{name}[{number}]", item) for number, item in enumerate(value[:MAX_VARIABLES])
            )
        elif type(value) is dict:
            yield from (
                (f"{name}[{key}]" if type(key) is str else name, item)
                for key, item in itertools.islice(value.items(), MAX_VARIABLES)
            )
        else:
            yield name, value
