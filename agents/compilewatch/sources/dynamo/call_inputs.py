"""What a function that compiles was called with: the modules and the tensors among its variables, distinguished and never kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MethodType
from typing import Any, NamedTuple

from compilewatch.runtime.torch_internals import MODULE, TENSOR

MOST_VARIABLES = 64


class Inputs(NamedTuple):
    """Two calls of one layer with tensors of one kind have equal ones."""

    modules: tuple[int, ...] = ()
    """The modules by their identity: layers that share their code differ in them."""
    tensors: frozenset[tuple[str, str]] = frozenset()
    """Shape, type and need of a gradient of each tensor, each with the name of its variable."""

    def likeness(self, other: Inputs) -> tuple[bool, int]:
        """How much two calls have in common: the layer first, then the properties of tensors."""
        return self.modules == other.modules, len(self.tensors & other.tensors)


NO_INPUTS = Inputs()


def sizes_of(value: Any) -> tuple[int, ...]:
    """The sizes of a tensor; nothing for what is none, or does not say."""
    tensor = TENSOR.find()
    with suppress(Exception):  # a subclass may refuse to say
        if isinstance(tensor, type) and issubclass(type(value), tensor):
            return tuple(value.shape)
    return ()


def inputs_of(variables: Mapping[str, Any]) -> Inputs:
    """The modules and tensors among the variables of a frame, and one level deep in its tuples, lists and dictionaries."""
    modules: list[int] = []
    tensors: list[tuple[str, str]] = []
    tensor, module = TENSOR.find(), MODULE.find()
    if not (isinstance(tensor, type) and isinstance(module, type)):
        return NO_INPUTS
    for name, value in itertools.islice(_variables(variables), MOST_VARIABLES):
        # By their types alone: `isinstance` asks an object for its class, and that may be the job's own code.
        if issubclass(type(value), module):
            modules.append(id(value))
        elif issubclass(type(value), tensor):
            with suppress(Exception):  # a subclass may refuse to say
                properties = str(sizes_of(value)), str(value.dtype), f"grad {value.requires_grad}"
                tensors += [(name, said) for said in properties]
    return Inputs(tuple(modules), frozenset(tensors))


def _variables(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in variables.items():
        if type(value) is MethodType:
            yield name, value.__self__
        elif type(value) in (tuple, list):
            yield from (
                (f"{name}[{number}]", item) for number, item in enumerate(value[:MOST_VARIABLES])
            )
        elif type(value) is dict:
            yield from (
                (f"{name}[{key}]" if type(key) is str else name, item)
                for key, item in itertools.islice(value.items(), MOST_VARIABLES)
            )
        else:
            yield name, value
