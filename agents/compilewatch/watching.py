"""What people write in their code: `watch`, `compile` and `region`, and how a callable of each kind is wrapped."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar, overload

from compilewatch import hotpath, suspended
from compilewatch.errors import say
from compilewatch.lines import Spec
from compilewatch.modes import mode_of, runtime_of
from compilewatch.recorder import RECORDER

T = TypeVar("T", bound=Callable[..., Any])
WATCHED = "_compilewatch_watched"
SUSPENDED = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


@overload
def watch(
    target: None = None,
    *,
    name: str | None = None,
    items: Callable[..., float] | None = None,
    bucket: Callable[..., object] | None = None,
    mode: str | None = None,
    runtime: str | None = None,
) -> Callable[[T], T]: ...


@overload
def watch(
    target: T,
    *,
    name: str | None = None,
    items: Callable[..., float] | None = None,
    bucket: Callable[..., object] | None = None,
    mode: str | None = None,
    runtime: str | None = None,
) -> T: ...


def watch(
    target: Any = None,
    *,
    name: str | None = None,
    items: Callable[..., float] | None = None,
    bucket: Callable[..., object] | None = None,
    mode: str | None = None,
    runtime: str | None = None,
) -> Any:
    """The target, timed at each call: a function, a method, a coroutine function, a generator function or an nn.Module.

    `items` answers how many items a call worked on, `bucket` what calls are comparable; both get the call's arguments. Without a
    target it is a decorator. While the agent is off because of its settings, the target itself comes back."""
    if target is None:
        return functools.partial(watch, name=name, items=items, bucket=bucket, mode=mode, runtime=runtime)
    spec = Spec("", mode or "", runtime or "", items, bucket)
    return watch_spec(target, name, spec)


def watch_spec(target: Any, name: str | None, spec: Spec) -> Any:
    """`watch` with everything that is known about the target; whatever goes wrong, the target itself comes back."""
    if RECORDER.off_for_good:
        return target
    try:
        if not callable(target) or inspect.isclass(target):
            say(f"watch() takes a function or a module, not {target!r:.80}; it stays as it is")
            return target
        spec.name = str(name or _name_of(target))
        spec.mode = str(spec.mode or mode_of(target))
        spec.runtime = str(spec.runtime or runtime_of(target))
        return _wrapped(target, spec)
    except Exception as error:  # noqa: BLE001 - the job goes on with its own callable
        RECORDER.internal_error(error)
        return target


def _wrapped(target: Any, spec: Spec) -> Any:
    if isinstance(target, staticmethod):
        return staticmethod(_wrapped(target.__func__, spec))
    base = RECORDER.register(spec)
    if inspect.isroutine(target) or not hasattr(target, "__dict__") or isinstance(target, functools.partial):
        return _dressed(_wrapper(target, spec, base), target)
    return _stand_in(target, spec, base)


def _wrapper(fn: Any, spec: Spec, base: int, skip: int = 0) -> Any:
    """What times this kind of function; `skip` leaves out `self`."""
    if inspect.iscoroutinefunction(fn):
        return suspended.coroutine_wrapper(fn, spec, base, skip)
    if inspect.isasyncgenfunction(fn):
        return suspended.async_generator_wrapper(fn, spec, base, skip)
    if inspect.isgeneratorfunction(fn):
        return suspended.generator_wrapper(fn, spec, base, skip)
    return hotpath.call_wrapper(fn, spec, base, skip)


def _dressed(wrapper: Any, target: Any) -> Any:
    """The wrapper with the target's name, signature and attributes. What torch keeps on a compiled function stays there: on the
    wrapper it would make torch reach through it. `_torchdynamo_inline` lets an outer compilation trace the target instead."""
    functools.update_wrapper(wrapper, target, updated=())
    for key, value in getattr(target, "__dict__", {}).items():
        if not key.startswith(("_torchdynamo", WATCHED)) and key != "__wrapped__":
            wrapper.__dict__[key] = value
    wrapper._torchdynamo_inline = target
    setattr(wrapper, WATCHED, True)
    return wrapper


def is_watched(target: Any) -> bool:
    """Whether `watch` made it."""
    return WATCHED in getattr(target, "__dict__", ()) or WATCHED in vars(type(target))


def _stand_in(target: Any, spec: Spec, base: int) -> Any:
    """An object of a subclass of the target's class that shares its attributes and is timed when called: attribute access,
    `state_dict`, hooks and `isinstance` are the target's own, and the target itself stays as it was."""
    kind = type(target)
    wrapper = _wrapper(kind.__call__, spec, base, skip=1)
    again = (target, spec.name, spec.mode, spec.runtime)
    body = {
        "__call__": _dressed(wrapper, kind.__call__),
        WATCHED: True,
        "__reduce_ex__": lambda self, protocol: (_watch_again, again),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
    }
    stand_in: Any = object.__new__(type(kind.__name__, (kind,), body))
    object.__setattr__(stand_in, "__dict__", target.__dict__)
    return stand_in


def _watch_again(target: Any, name: str, mode: str, runtime: str) -> Any:
    """What a pickled or copied stand-in becomes: the target's copy, watched again."""
    return watch(target, name=name, mode=mode, runtime=runtime)


def _name_of(target: Any) -> str:
    inner = getattr(target, "_orig_mod", target)
    owner = getattr(inner, "__self__", None)
    if owner is not None and getattr(inner, "__name__", "") in ("forward", "__call__", "_call_impl"):
        return type(owner).__name__
    return getattr(inner, "__name__", None) or type(inner).__name__


@overload
def compile(
    target: None = None, *, name: str | None = None, items: Callable[..., float] | None = None, **options: Any
) -> Callable[[T], T]: ...


@overload
def compile(target: T, *, name: str | None = None, items: Callable[..., float] | None = None, **options: Any) -> T: ...


def compile(target: Any = None, *, name: str | None = None, items: Callable[..., float] | None = None, **options: Any) -> Any:
    """`torch.compile` and `watch` in one; the mode, `dynamic` and `fullgraph` are reported with the region."""
    if target is None:
        return functools.partial(compile, name=name, items=items, **options)
    torch = importlib.import_module("torch")
    return watch_compiled(torch.compile(target, **options), target, options, name, items)


def watch_compiled(
    compiled: Any, target: Any, options: dict[str, Any], name: str | None = None, items: Callable[..., float] | None = None
) -> Any:
    """`watch` for what `torch.compile` made of the target; under `compilewatch run` it comes out of there watched already."""
    if is_watched(compiled) and name is None and items is None:
        return compiled
    told = {key: str(options[key]) for key in ("mode", "dynamic", "fullgraph", "backend") if options.get(key) is not None}
    spec = Spec("", str(options.get("mode") or ""), "torch.compile", items, options=told)
    return watch_spec(compiled, name or _name_of(target), spec)


class region:
    """`with compilewatch.region("train_step", items=32): ...` times a block; blocks of one name are one region."""

    __slots__ = ("_items", "_name", "_open")

    def __init__(self, name: str, *, items: float | None = None) -> None:
        self._name = name
        self._items = items
        self._open: list[hotpath.Running] = []

    def __enter__(self) -> region:
        if hotpath.tracing() or RECORDER.lines is None:
            return self
        try:
            # A block of a coroutine or generator is suspended with it, and what runs meanwhile is not inside it.
            stays = not sys._getframe(1).f_code.co_flags & SUSPENDED
            self._open.append(hotpath.Running(RECORDER.register(Spec(str(self._name))), stays=stays))
        except Exception as error:  # noqa: BLE001 - the block runs in any case
            RECORDER.internal_error(error)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if hotpath.tracing() or not self._open:
            return
        # One object may be entered again, also by another thread: the newest of this thread's is the one that ends.
        running = next((one for one in reversed(self._open) if one.is_mine()), None)
        if running is not None:
            self._open.remove(running)
            running.finish(kind is not None, None if self._items is None else hotpath.amount(self._items))
