"""What a callable can call, read from its code: its globals, its closure, and the attributes of its object that it names.

`type` alone distinguishes objects: `isinstance` asks an object for its class, and a proxy, as Flask's `request` is, may raise then."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

MOST = 300
"""Objects looked at, at most: what a job calls in a few steps is among them."""


def reached(target: Any) -> Iterator[Any]:
    """The target and what it reaches, nearest first; calls nothing of the job's, imports nothing."""
    waiting, seen = [target], set[int]()
    while waiting and len(seen) < MOST:
        thing = waiting.pop(0)
        if (
            id(thing) in seen
            or thing is None
            or issubclass(type(thing), (ModuleType, type, str, int, float))
        ):
            continue
        seen.add(id(thing))
        yield thing
        waiting += _next(thing)


def _next(thing: Any) -> list[Any]:
    if issubclass(type(thing), functools.partial):
        return [thing.func, *thing.args]
    if type(thing) is MethodType and isinstance(thing.__func__, FunctionType):
        return [thing.__self__, *_named_by(thing.__func__, thing.__self__)]
    if type(thing) is FunctionType:
        return _named_by(thing, None)
    called = inspect.getattr_static(type(thing), "forward", None) or inspect.getattr_static(
        type(thing), "__call__", None
    )
    return _named_by(called, thing) if isinstance(called, FunctionType) else []


def _named_by(function: FunctionType, owner: Any) -> list[Any]:
    found = [getattr(function, "__wrapped__", None)]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue  # nothing was put into it yet
    names = _names(function.__code__)
    found += [function.__globals__[name] for name in names if name in function.__globals__]
    if owner is not None:
        found += _attributes(owner, names)
    # Of an object that the code names, it may call methods that it names.
    return found + [method for thing in list(found) for method in _methods(thing, names)]


def _attributes(owner: Any, names: list[str]) -> list[Any]:
    own = getattr(owner, "__dict__", {})
    children = own.get("_modules") or {}
    return [place[name] for name in names for place in (own, children) if name in place] + _methods(
        owner, names
    )


def _methods(thing: Any, names: list[str]) -> list[Any]:
    found = [getattr(type(thing), name, None) for name in names]
    return [MethodType(function, thing) for function in found if isinstance(function, FunctionType)]


def _names(code: CodeType) -> list[str]:
    inner = [
        name for const in code.co_consts if isinstance(const, CodeType) for name in _names(const)
    ]
    return [*code.co_names, *inner]
