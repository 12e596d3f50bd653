"""Side-effect detector: compares a fingerprint of all reachable state before and after a call.

Algorithm: an iterative depth-first walk over the object graph. The roots are the arguments, the
module, and the closure, defaults and globals that the function's code names. Each place gets a mark
that changes when the object changes: a tensor's identity and version counter, a container's
identity and length, a scalar's value, otherwise the identity. Two walks with unequal marks prove an
effect.

Invariants:
- No tensor value is read, so the walk never waits for a GPU. NumPy arrays are hashed.
- The walk visits each container once, so cycles end. It raises ComparisonError beyond `MAX_PLACES`
  places or `MAX_DEPTH` levels: a callable with more state is not known to be pure.
- Random state is compared separately: another thread may draw random numbers during the call.
- Not detected: files, sockets, state inside C extensions, and changes of an inference tensor, which
  has no version counter. The comparison with the eager call on copies covers inference tensors.

Cost: one walk takes time linear in the number of reachable objects, and only sampled calls pay it.
Source: PyTorch's tensor version counters (`Tensor._version`), as autograd uses them for its checks
of in-place changes."""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from compilewatch.errors import ComparisonError

MAX_PLACES = 100_000
"""Maximum number of places; a callable with more state is not known to be pure."""
MAX_DEPTH = 12
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_LISTS = (list, tuple, deque)

Marks = dict[str, Any]


class Snapshot:
    """Snapshot of the state before a call."""

    def __init__(self, torch: Any, roots: Iterable[tuple[str, Any]]) -> None:
        self._torch = torch
        self._roots = list(roots)
        self._marks = _marks(torch, self._roots)
        self._random_states = _random_states(torch)

    def describe_effect(self) -> str:
        """Describes the side effect of the call; empty if there is none."""
        now = _marks(self._torch, self._roots)
        for place, mark in self._marks.items():
            if now.get(place) != mark:
                return (
                    f"it changes {place} in place"
                    if place.startswith("argument")
                    else f"it keeps state: {place} changes"
                )
        new = next((place for place in now if place not in self._marks), "")
        if new:
            return f"it keeps state: {new} is new"
        return ""

    def has_drawn(self) -> bool:
        """True if random numbers were drawn since the snapshot."""
        return _random_states(self._torch) != self._random_states


def roots_of(
    eager: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, Any]]:
    """Roots of the walk: arguments, module, and the state that the function's code can reach."""
    found = [(f"argument {number}", one) for number, one in enumerate(args)]
    found += [(f"argument `{name}`", one) for name, one in kwargs.items()]
    if module is None:
        return [*found, *_state_of(eager)]
    found.append(("", module))
    codes = {
        type(part).forward
        for part in module.modules()
        if not type(part).__module__.startswith("torch.")
    }
    return found + [pair for code in codes for pair in _state_of(code)]


def _state_of(function: Any) -> Iterator[tuple[str, Any]]:
    """State of a function: closure, defaults, globals, and the object that it is a method of."""
    if isinstance(function, MethodType):
        yield "self", function.__self__
        function = function.__func__
    if not isinstance(function, FunctionType):
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # the cell is still empty
            continue
    yield "a default", function.__defaults__
    yield "a keyword default", function.__kwdefaults__
    for name in _names(function.__code__):
        value = function.__globals__.get(name)
        if not isinstance(value, ModuleType | FunctionType | type):
            yield name, value


def _names(code: CodeType) -> Iterator[str]:
    """Names that the code uses, including the code of inner functions."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _marks(torch: Any, roots: Iterable[tuple[str, Any]]) -> Marks:
    found: Marks = {}
    visited: set[int] = set()
    waiting: list[tuple[str, Any, int]] = [(place, one, 0) for place, one in roots]
    while waiting:
        place, one, depth = waiting.pop()
        found[place] = _mark(torch, one)
        if id(one) in visited or isinstance(one, (*_PLAIN, torch.Tensor, type, ModuleType)):
            continue
        visited.add(id(one))
        if len(found) > MAX_PLACES or depth > MAX_DEPTH:
            raise ComparisonError("it holds too many objects to check for side effects")
        waiting += [(name, inner, depth + 1) for name, inner in _children_of(torch, place, one)]
    return found


def _mark(torch: Any, one: Any) -> Any:
    """A value that differs after the object has changed."""
    if isinstance(one, torch.Tensor):
        # An inference tensor has no version counter; changes of its copy are detected instead.
        return id(one), None if one.is_inference() else one._version, tuple(one.shape)
    if isinstance(one, torch.Generator):
        return bytes(one.get_state().tolist())
    if isinstance(one, float):
        return one if one == one else "nan"
    if isinstance(one, _PLAIN):
        return one
    if type(one).__module__ == "numpy" and hasattr(one, "tobytes"):
        return hash(one.tobytes())
    if isinstance(one, set | frozenset):
        return len(one), frozenset(map(id, one))
    return (id(one), len(one)) if isinstance(one, (dict, *_LISTS)) else id(one)


def _children_of(torch: Any, place: str, one: Any) -> Iterator[tuple[str, Any]]:
    """The objects inside an object, with their places."""
    if isinstance(one, dict):
        yield from ((_place_of(place, key), inner) for key, inner in list(one.items()))
    elif isinstance(one, _LISTS):
        yield from ((f"{place}[{number}]", inner) for number, inner in enumerate(list(one)))
    elif isinstance(one, FunctionType | MethodType):
        yield from ((f"{place}'s {name}", inner) for name, inner in _state_of(one))
    elif isinstance(one, torch.nn.Module) or not type(one).__module__.startswith(
        ("torch", "builtins", "_thread", "threading", "logging")
    ):
        yield from (
            (f"{place}.{name}" if place else name, inner)
            for name, inner in list(getattr(one, "__dict__", {}).items())
        )


def _place_of(place: str, key: Any) -> str:
    """Name of an inner place, without the tables in which torch keeps the parts of a module."""
    holder = place.rpartition(".")[2]
    name = str(key) if isinstance(key, _PLAIN) else f"<{type(key).__name__} {id(key)}>"
    if holder in ("_parameters", "_buffers", "_modules"):
        return f"{place.removesuffix(holder)}{name}"
    return f"{place}[{name}]"


def _random_states(torch: Any) -> tuple[Any, ...]:
    """State of all random number generators."""
    numpy = sys.modules.get("numpy.random")
    arrays = None if numpy is None else str(numpy.get_state())
    return torch.get_rng_state().tolist(), random.getstate(), arrays, _gpu_random_states(torch)


def _gpu_random_states(torch: Any) -> list[list[int]]:
    """Seed and offset of each GPU's generator, which the host holds: no synchronisation."""
    if not torch.cuda.is_initialized():
        return []
    return [one.get_state().tolist() for one in torch.cuda.default_generators]
