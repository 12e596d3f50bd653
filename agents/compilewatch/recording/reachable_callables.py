"""Reachability: what a callable can call, read from its code.

The search follows globals, the closure, and the attributes of its object that the code names. It
compares types with `type` only. `isinstance` reads the class of an object, and a proxy such as
Flask's `request` may raise then."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

MAX_OBJECTS = 300
"""Maximum number of objects read. What a job calls within a few steps is among them."""


def iterate_reachable(target: Any) -> Iterator[Any]:
    """Yields the target and what it reaches, nearest first. Calls no code of the job and imports
    nothing."""
    queue, visited = [target], set[int]()
    while queue and len(visited) < MAX_OBJECTS:
        candidate = queue.pop(0)
        if (
            id(candidate) in visited
            or candidate is None
            or issubclass(type(candidate), (ModuleType, type, str, int, float))
        ):
            continue
        visited.add(id(candidate))
        yield candidate
        queue += _list_reachable(candidate)


def _list_reachable(candidate: Any) -> list[Any]:
    if issubclass(type(candidate), functools.partial):
        return [candidate.func, *candidate.args]
    if type(candidate) is MethodType and isinstance(candidate.__func__, FunctionType):
        return [candidate.__self__, *_list_named(candidate.__func__, candidate.__self__)]
    if type(candidate) is FunctionType:
        return _list_named(candidate, None)
    entry_point = inspect.getattr_static(
        type(candidate), "forward", None
    ) or inspect.getattr_static(type(candidate), "__call__", None)
    return _list_named(entry_point, candidate) if isinstance(entry_point, FunctionType) else []


def _list_named(function: FunctionType, owner: Any) -> list[Any]:
    callables = [getattr(function, "__wrapped__", None)]
    for cell in function.__closure__ or ():
        try:
            callables.append(cell.cell_contents)
        except ValueError:
            continue  # the cell is still empty
    names = _list_names(function.__code__)
    callables += [function.__globals__[name] for name in names if name in function.__globals__]
    if owner is not None:
        callables += _list_attributes(owner, names)
    # The code may call methods that it names, of objects that it names.
    return callables + [
        method for candidate in list(callables) for method in _list_methods(candidate, names)
    ]


def _list_attributes(owner: Any, names: list[str]) -> list[Any]:
    attributes = getattr(owner, "__dict__", {})
    children = attributes.get("_modules") or {}
    return [
        namespace[name]
        for name in names
        for namespace in (attributes, children)
        if name in namespace
    ] + _list_methods(owner, names)


def _list_methods(candidate: Any, names: list[str]) -> list[Any]:
    callables = [getattr(type(candidate), name, None) for name in names]
    return [
        MethodType(function, candidate)
        for function in callables
        if isinstance(function, FunctionType)
    ]


def _list_names(code: CodeType) -> list[str]:
    nested_names = [
        name
        for const in code.co_consts
        if isinstance(const, CodeType)
        for name in _list_names(const)
    ]
    return [*code.co_names, *nested_names]
