"""Whether a call left something behind: what its arguments and the callable hold is noted before it and looked at after it."""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from compilewatch.errors import NotCompared

MOST = 100_000
"""Things that are looked at; what holds more is not known to be pure."""
DEEPEST = 12
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_LISTS = (list, tuple, deque)

Marks = dict[str, Any]


class Before:
    """What was there before a call."""

    def __init__(self, torch: Any, roots: Iterable[tuple[str, Any]]) -> None:
        self._torch = torch
        self._roots = list(roots)
        self._marks = _marks(torch, self._roots)
        self._drawn = _drawn(torch)

    def left(self) -> str:
        """What the call left behind, in words; empty if nothing was found."""
        now = _marks(self._torch, self._roots)
        for place, mark in self._marks.items():
            if now.get(place) != mark:
                return (
                    f"it changes {place} in place"
                    if place.startswith("argument")
                    else f"it keeps something: {place} changes"
                )
        new = next((place for place in now if place not in self._marks), "")
        if new:
            return f"it keeps something: {new} is new"
        return ""

    def drew(self) -> bool:
        """Whether random numbers were drawn since."""
        return _drawn(self._torch) != self._drawn


def roots_of(
    eager: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, Any]]:
    """Where a call may leave something: its arguments, the module, and what the function's own code keeps."""
    found = [(f"argument {number}", one) for number, one in enumerate(args)]
    found += [(f"argument `{name}`", one) for name, one in kwargs.items()]
    if module is None:
        return [*found, *_kept_by(eager)]
    found.append(("", module))
    codes = {
        type(part).forward
        for part in module.modules()
        if not type(part).__module__.startswith("torch.")
    }
    return found + [pair for code in codes for pair in _kept_by(code)]


def _kept_by(function: Any) -> Iterator[tuple[str, Any]]:
    """What a function holds besides its arguments: what it closes over, its defaults, its globals, and the object it is a method of."""
    if isinstance(function, MethodType):
        yield "self", function.__self__
        function = function.__func__
    if not isinstance(function, FunctionType):
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # nothing was put there yet
            continue
    yield "a default", function.__defaults__
    yield "a default by name", function.__kwdefaults__
    for name in _names(function.__code__):
        held = function.__globals__.get(name)
        if not isinstance(held, ModuleType | FunctionType | type):
            yield name, held


def _names(code: CodeType) -> Iterator[str]:
    """The names that code uses, that of functions inside it too."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _marks(torch: Any, roots: Iterable[tuple[str, Any]]) -> Marks:
    found: Marks = {}
    met: set[int] = set()
    waiting: list[tuple[str, Any, int]] = [(place, one, 0) for place, one in roots]
    while waiting:
        place, one, depth = waiting.pop()
        found[place] = _mark(torch, one)
        if id(one) in met or isinstance(one, (*_PLAIN, torch.Tensor, type, ModuleType)):
            continue
        met.add(id(one))
        if len(found) > MOST or depth > DEEPEST:
            raise NotCompared("it holds more than can be looked at")
        waiting += [(name, inner, depth + 1) for name, inner in _inside(torch, place, one)]
    return found


def _mark(torch: Any, one: Any) -> Any:
    """What is another thing once it was changed; for what holds others, how many."""
    if isinstance(one, torch.Tensor):
        # An inference tensor says nothing of its changes; a call is then known by what it does to copies.
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


def _inside(torch: Any, place: str, one: Any) -> Iterator[tuple[str, Any]]:
    """What it holds, under names."""
    if isinstance(one, dict):
        yield from ((_named(place, key), inner) for key, inner in list(one.items()))
    elif isinstance(one, _LISTS):
        yield from ((f"{place}[{number}]", inner) for number, inner in enumerate(list(one)))
    elif isinstance(one, FunctionType | MethodType):
        yield from ((f"{place}'s {name}", inner) for name, inner in _kept_by(one))
    elif isinstance(one, torch.nn.Module) or not type(one).__module__.startswith(
        ("torch", "builtins", "_thread", "threading", "logging")
    ):
        yield from (
            (f"{place}.{name}" if place else name, inner)
            for name, inner in list(getattr(one, "__dict__", {}).items())
        )


def _named(place: str, key: Any) -> str:
    """torch's own tables of a module are no part of a name that people know."""
    holder = place.rpartition(".")[2]
    name = str(key) if isinstance(key, _PLAIN) else f"<{type(key).__name__} {id(key)}>"
    if holder in ("_parameters", "_buffers", "_modules"):
        return f"{place.removesuffix(holder)}{name}"
    return f"{place}[{name}]"


def _drawn(torch: Any) -> tuple[Any, ...]:
    """Where the sequences of random numbers stand."""
    numpy = sys.modules.get("numpy.random")
    arrays = None if numpy is None else str(numpy.get_state())
    return torch.get_rng_state().tolist(), random.getstate(), arrays, _drawn_on_gpus(torch)


def _drawn_on_gpus(torch: Any) -> list[list[int]]:
    """Seed and position of each GPU's sequence, which the host keeps: nothing is waited for."""
    if not torch.cuda.is_initialized():
        return []
    return [one.get_state().tolist() for one in torch.cuda.default_generators]
