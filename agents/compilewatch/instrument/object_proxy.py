"""An object that stands in for a callable one, such as an nn.Module: it shares all it has, and is timed when it is called."""

from __future__ import annotations

import copy
import operator
import weakref
from collections.abc import Callable
from typing import Any

from compilewatch.errors import AgentError

WATCHED = "_compilewatch_watched"
TARGETS: dict[int, tuple[weakref.ref[Any], Any]] = {}
"""What each living stand-in stands in for, by the stand-in's id: kept alive as long as it, since only their `__dict__` is one."""


class NotShareable(AgentError):
    """Python has no second object with the same content."""


class _Blank:
    """The base a stand-in's class is made with, so that neither a metaclass nor `__init_subclass__` of the job's learns of it."""


def stand_in(target: Any, call: Callable[..., Any]) -> Any:
    """An object of a subclass of the target's class with the target's own `__dict__`: attributes, `state_dict`, hooks, `isinstance`
    and equality are the target's, and the target itself stays as it was. Copies are watched too; what a pickle holds is the
    bare target, so that it can be read where there is no agent. Raises NotShareable for an object that holds more than a `__dict__`."""
    try:
        made: Any = object.__new__(_class_for(type(target), call))
    except TypeError as error:
        raise NotShareable(f"an object of {type(target).__name__}: {error}") from None
    _share(made, target)
    return made


def _share(made: Any, target: Any) -> None:
    key = id(made)
    TARGETS[key] = (weakref.ref(made, lambda _: TARGETS.pop(key, None)), target)
    _real_dict(made).__set__(made, target.__dict__)


def _class_for(kind: type, call: Callable[..., Any]) -> type:
    defined = {name for base in kind.__mro__[:-1] for name in vars(base)}
    body: dict[str, Any] = {
        "__call__": call,
        WATCHED: getattr(call, WATCHED, ""),
        "__class__": property(_class_get, _class_set),
        "__copy__": _copied,
        "__deepcopy__": _deepcopied,
        "__reduce_ex__": _reduced,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
    }
    if not defined & {"__eq__", "__hash__"}:
        body |= {"__eq__": _equal, "__hash__": _hash}
    if "__del__" in defined:
        body["__del__"] = _nothing
    body |= {name: _forwarded(name) for name in _slots(kind)}
    made: type = type.__new__(type(kind), kind.__name__, (_Blank,), dict(body))
    try:
        made.__bases__ = (kind,)
    except TypeError:  # objects of that class are laid out otherwise
        made = type.__new__(type(kind), kind.__name__, (kind,), body)
    return made


def _origin(self: Any) -> Any:
    """What it stands in for; the object itself where it was made from the stand-in's class in some other way."""
    found = TARGETS.get(id(self))
    return self if found is None else found[1]


def stood_for(one: Any) -> Any:
    """What a stand-in stands in for, through any number of them; anything else is itself."""
    while WATCHED in vars(type(one)) and _origin(one) is not one:
        one = _origin(one)
    return one


def _class_get(self: Any) -> type:
    target = _origin(self)
    return type(self).__mro__[1] if target is self else target.__class__


def _class_set(self: Any, kind: type) -> None:
    """Lazy modules and parametrizations turn themselves into another class."""
    target = _origin(self)
    if target is not self:
        target.__class__ = kind
    _REAL_CLASS.__set__(self, _class_for(kind, type(self).__dict__["__call__"]))


def _copied(self: Any) -> Any:
    target = _origin(self)
    if target is not self:
        return stand_in(copy.copy(target), type(self).__dict__["__call__"])
    made = object.__new__(type(self))
    made.__dict__.update(self.__dict__)
    return made


def _deepcopied(self: Any, memo: dict[int, Any]) -> Any:
    made = memo[id(self)] = object.__new__(type(self))
    target = _origin(self)
    if target is self:
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    else:
        _share(made, copy.deepcopy(target, memo))
    return made


def _reduced(self: Any, protocol: Any) -> Any:
    target, kind = _origin(self), self.__class__
    if target is not self:
        return _ONLY, ((target,),)
    answer = kind.__reduce_ex__(self, protocol)
    if not isinstance(answer, tuple):
        return answer
    return (
        answer[0],
        tuple(kind if value is type(self) else value for value in answer[1]),
        *answer[2:],
    )


def _equal(self: Any, other: Any) -> Any:
    return True if stood_for(self) is stood_for(other) else NotImplemented


def _hash(self: Any) -> int:
    return object.__hash__(stood_for(self))


def _nothing(self: Any) -> None:
    """The target's own end comes with the target."""


def _slots(kind: type) -> set[str]:
    """The attributes of its objects that are in no `__dict__`."""
    names: set[str] = set()
    for base in kind.__mro__:
        given = base.__dict__.get("__slots__", ())
        names |= {given} if isinstance(given, str) else set(given)
    return names - {"__dict__", "__weakref__"}


def _forwarded(name: str) -> property:
    return property(
        lambda self: getattr(_origin(self), name),
        lambda self, value: setattr(_origin(self), name, value),
        lambda self: delattr(_origin(self), name),
    )


def _real_dict(made: Any) -> Any:
    """Python's own way to an object's `__dict__`, past a `__setattr__` or a property of the job's."""
    for base in type(made).__mro__:
        found = base.__dict__.get("__dict__")
        if type(found).__name__ == "getset_descriptor":
            return found
    raise NotShareable(f"an object of {type(made).__name__} has no __dict__ of its own")


_ONLY = operator.itemgetter(0)
"""What a pickle calls to get the target out of a tuple: nothing of ours has to be there to read it."""
_REAL_CLASS: Any = object.__dict__["__class__"]
