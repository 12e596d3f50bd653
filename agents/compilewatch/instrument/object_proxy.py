"""Object proxy: an object that shares all state of a callable object, such as an nn.Module, and
times its calls.

Algorithm: a proxy by subclass and shared `__dict__`. The class of the proxy is a new subclass of
the target's class with another `__call__`. The `__dict__` of the proxy is the dictionary of the
target itself, not a copy. `isinstance`, attributes, hooks, `state_dict` and `super()` therefore
work without forwarding. Slots have no dictionary and are forwarded by properties.

Invariants. The target stays unchanged. `__class__` reports the class of the target. Equality and
hash are those of the target. A copy of a proxy is a proxy. A pickle holds the bare target, so that
it loads without the agent. The target lives at least as long as its proxy (`PROXY_TARGETS`),
because the proxy shares only the dictionary. The class is created below `_EmptyBase` and then
rebased, so neither a metaclass nor `__init_subclass__` of the job runs. A class with another memory
layout cannot be rebased and is derived directly. No lock: each entry of `PROXY_TARGETS` is written
by the creator of its proxy and removed by the callback of its weak reference.

Cost: one class for each proxy, created once; a call pays for the wrapper only. Attribute access
costs the same as on the target, except for slots. Source: the ObjectProxy of wrapt; that one
forwards each access instead."""

from __future__ import annotations

import copy
import operator
import weakref
from collections.abc import Callable
from typing import Any

from compilewatch.errors import AgentError

WATCHED_ATTRIBUTE = "_compilewatch_watched"
PROXY_TARGETS: dict[int, tuple[weakref.ref[Any], Any]] = {}
"""The target of each living proxy, by the id of the proxy. The proxy shares only the `__dict__`,
so this entry keeps the target alive."""


class NotShareableError(AgentError):
    """The object has state that Python cannot share with a second object."""


class _EmptyBase:
    """Base of a proxy class during its creation, so that no metaclass or `__init_subclass__` of
    the job runs."""


def create_proxy(target: Any, call: Callable[..., Any]) -> Any:
    """Creates a proxy: an object of a subclass of the target's class, with the target's own
    `__dict__`.

    Attributes, `state_dict`, hooks, `isinstance` and equality are those of the target. The
    target itself stays unchanged. Copies are watched too. A pickle holds the bare target and
    loads without the agent. Raises NotShareableError for an object with state outside of its
    `__dict__`."""
    try:
        proxy: Any = object.__new__(_create_class(type(target), call))
    except TypeError as error:
        raise NotShareableError(f"an object of {type(target).__name__}: {error}") from None
    _share_dict(proxy, target)
    return proxy


def _share_dict(proxy: Any, target: Any) -> None:
    key = id(proxy)
    PROXY_TARGETS[key] = (weakref.ref(proxy, lambda _: PROXY_TARGETS.pop(key, None)), target)
    _find_dict_descriptor(proxy).__set__(proxy, target.__dict__)


def _create_class(kind: type, call: Callable[..., Any]) -> type:
    defined_names = {name for base in kind.__mro__[:-1] for name in vars(base)}
    body: dict[str, Any] = {
        "__call__": call,
        WATCHED_ATTRIBUTE: getattr(call, WATCHED_ATTRIBUTE, ""),
        "__class__": property(_get_class, _set_class),
        "__copy__": _copy,
        "__deepcopy__": _deepcopy,
        "__reduce_ex__": _reduce,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
    }
    if not defined_names & {"__eq__", "__hash__"}:
        body |= {"__eq__": _compare, "__hash__": _hash}
    if "__del__" in defined_names:
        body["__del__"] = _do_nothing
    body |= {name: _forward_slot(name) for name in _list_slots(kind)}
    proxy_class: type = type.__new__(type(kind), kind.__name__, (_EmptyBase,), dict(body))
    try:
        proxy_class.__bases__ = (kind,)
    except TypeError:  # objects of that class have another memory layout
        proxy_class = type.__new__(type(kind), kind.__name__, (kind,), body)
    return proxy_class


def _origin(self: Any) -> Any:
    """The target of the proxy; the object itself if it was created from the proxy's class in
    another way."""
    entry = PROXY_TARGETS.get(id(self))
    return self if entry is None else entry[1]


def unwrap_proxy(candidate: Any) -> Any:
    """The target of a proxy, through nested proxies. Any other object is returned unchanged."""
    while WATCHED_ATTRIBUTE in vars(type(candidate)) and _origin(candidate) is not candidate:
        candidate = _origin(candidate)
    return candidate


def _get_class(self: Any) -> type:
    target = _origin(self)
    return type(self).__mro__[1] if target is self else target.__class__


def _set_class(self: Any, kind: type) -> None:
    """Lazy modules and parametrizations change their own class."""
    target = _origin(self)
    if target is not self:
        target.__class__ = kind
    _CLASS_DESCRIPTOR.__set__(self, _create_class(kind, type(self).__dict__["__call__"]))


def _copy(self: Any) -> Any:
    target = _origin(self)
    if target is not self:
        return create_proxy(copy.copy(target), type(self).__dict__["__call__"])
    copied = object.__new__(type(self))
    copied.__dict__.update(self.__dict__)
    return copied


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    copied = memo[id(self)] = object.__new__(type(self))
    target = _origin(self)
    if target is self:
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
    else:
        _share_dict(copied, copy.deepcopy(target, memo))
    return copied


def _reduce(self: Any, protocol: Any) -> Any:
    target, kind = _origin(self), self.__class__
    if target is not self:
        return _TAKE_FIRST, ((target,),)
    answer = kind.__reduce_ex__(self, protocol)
    if not isinstance(answer, tuple):
        return answer
    return (
        answer[0],
        tuple(kind if value is type(self) else value for value in answer[1]),
        *answer[2:],
    )


def _compare(self: Any, other: Any) -> Any:
    return True if unwrap_proxy(self) is unwrap_proxy(other) else NotImplemented


def _hash(self: Any) -> int:
    return object.__hash__(unwrap_proxy(self))


def _do_nothing(self: Any) -> None:
    """The target's own `__del__` runs with the target."""


def _list_slots(kind: type) -> set[str]:
    """Attributes of the class that are not in the `__dict__` of its objects."""
    names: set[str] = set()
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        names |= {slots} if isinstance(slots, str) else set(slots)
    return names - {"__dict__", "__weakref__"}


def _forward_slot(name: str) -> property:
    return property(
        lambda self: getattr(_origin(self), name),
        lambda self, value: setattr(_origin(self), name, value),
        lambda self: delattr(_origin(self), name),
    )


def _find_dict_descriptor(proxy: Any) -> Any:
    """Python's own descriptor of `__dict__`. Bypasses a `__setattr__` or a property of the job."""
    for base in type(proxy).__mro__:
        descriptor = base.__dict__.get("__dict__")
        if type(descriptor).__name__ == "getset_descriptor":
            return descriptor
    raise NotShareableError(f"an object of {type(proxy).__name__} has no __dict__ of its own")


_TAKE_FIRST = operator.itemgetter(0)
"""Called by a pickle to take the target out of a tuple. Loading needs nothing of the agent."""
_CLASS_DESCRIPTOR: Any = object.__dict__["__class__"]
