"""Public API: `watch`, `compile` and `region`."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import weakref
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, TypeVar, overload

from compilewatch.errors import warn_user
from compilewatch.instrument import hotpath, timed_call
from compilewatch.instrument.compile_mode import is_disabled, mode_of
from compilewatch.instrument.object_proxy import WATCHED_ATTRIBUTE, NotShareableError
from compilewatch.instrument.runtime import runtime_of
from compilewatch.instrument.wrap import wrap_target
from compilewatch.lazy_modules import ANSWER_CHECK, require
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import RegionSpec, safe_text
from compilewatch.recording.runtime_names import TORCHSCRIPT
from compilewatch.runtime.interpreters import is_gil_enabled
from compilewatch.wire.messages import MAX_TEXT

T = TypeVar("T", bound=Callable[..., Any])
SUSPENDABLE_FLAGS = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


@overload
def watch(
    target: None = None,
    *,
    name: str | None = None,
    items: Callable[..., float] | None = None,
    bucket: Callable[..., object] | None = None,
    mode: str | None = None,
    runtime: str | None = None,
    finite: bool | None = None,
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
    finite: bool | None = None,
) -> T: ...


def watch(
    target: Any = None,
    *,
    name: str | None = None,
    items: Callable[..., float] | None = None,
    bucket: Callable[..., object] | None = None,
    mode: str | None = None,
    runtime: str | None = None,
    finite: bool | None = None,
) -> Any:
    """Returns the target with each call timed.

    The target is a function, a method, a coroutine function, a generator function or an
    nn.Module. `items` returns the number of items of a call, and `bucket` the group of
    comparable calls. Both receive the arguments of the call. `finite` checks one result in a
    hundred for NaN and infinite values. `COMPILEWATCH_FINITE=1` does so for every watched
    callable. Without a target, `watch` is a decorator. While the settings disable the agent,
    `watch` returns the target itself."""
    if target is None:
        return functools.partial(
            watch, name=name, items=items, bucket=bucket, mode=mode, runtime=runtime, finite=finite
        )
    spec = RegionSpec(
        "",
        "" if mode is None else safe_text(mode),
        "" if runtime is None else safe_text(runtime),
        items,
        bucket,
    )
    return watch_spec(target, name, spec, finite)


def watch_spec(target: Any, name: str | None, spec: RegionSpec, finite: bool | None = None) -> Any:
    """Watches the target with a complete spec. Returns the target itself if the agent fails."""
    if RECORDER.is_disabled or not is_gil_enabled():
        return target
    try:
        if inspect.isclass(target) or not (callable(target) or isinstance(target, classmethod)):
            warn_user(
                f"watch() takes a function or a module, not {safe_text(target)!r:.80}; "
                "the object is returned unchanged"
            )
            return target
        spec.name = ("" if name is None else safe_text(name)) or safe_text(name_of(target))
        spec.mode = spec.mode or safe_text(mode_of(target))
        spec.runtime, spec.shows_runtime = spec.runtime or safe_text(runtime_of(target)), True
        spec.target, spec.module = (
            reference_to(target),
            reference_to(getattr(target, "_orig_mod", target)),
        )
        wrapper = wrap_target(target, spec)
        if finite or (finite is None and RECORDER.specs.check_nan):
            wrapper = require(ANSWER_CHECK).add_nan_check(wrapper, asked=bool(finite))
        return wrapper
    except NotShareableError as error:
        warn_user(f"watch() cannot time {error}; the object is returned unchanged")
        return target
    except Exception as error:  # noqa: BLE001 - the job continues with its own callable
        RECORDER.record_internal_error(error)
        return target


def reference_to(target: Any) -> Callable[[], Any] | None:
    """A weak reference; None if the target does not allow one."""
    try:
        return weakref.WeakMethod(target) if isinstance(target, MethodType) else weakref.ref(target)
    except TypeError:
        return None


def is_watched(target: Any) -> bool:
    """True if `watch` created the target."""
    return WATCHED_ATTRIBUTE in getattr(target, "__dict__", ()) or WATCHED_ATTRIBUTE in vars(
        type(target)
    )


def region_of(target: Any) -> str:
    """The region that counts the calls of the target. For an unwatched target, the region that
    `watch` would use."""
    region_name = getattr(target, WATCHED_ATTRIBUTE, "") if is_watched(target) else ""
    return (
        region_name if isinstance(region_name, str) and region_name else safe_text(name_of(target))
    )


def name_of(target: Any) -> str:
    """The name that the job's code gives the target."""
    inner = (
        target.func
        if isinstance(target, functools.partial)
        else getattr(target, "_orig_mod", target)
    )
    inner = getattr(inner, "_torchdynamo_orig_callable", inner)
    owner = getattr(inner, "__self__", None)
    if owner is not None and getattr(inner, "__name__", "") in (
        "forward",
        "__call__",
        "_call_impl",
        "_wrapped_call_impl",
    ):
        return type(owner).__name__
    if runtime_of(inner) == TORCHSCRIPT:
        return (
            getattr(inner, "original_name", None)
            or getattr(inner, "name", None)
            or type(inner).__name__
        )
    return getattr(inner, "__name__", None) or type(inner).__name__


@overload
def compile(
    target: None = None,
    *,
    name: str | None = None,
    items: Callable[..., float] | None = None,
    **options: Any,
) -> Callable[[T], T]: ...


@overload
def compile(
    target: T, *, name: str | None = None, items: Callable[..., float] | None = None, **options: Any
) -> T: ...


def compile(
    target: Any = None,
    *,
    name: str | None = None,
    items: Callable[..., float] | None = None,
    **options: Any,
) -> Any:
    """Compiles the target with `torch.compile` and watches it.

    The region reports the mode, `dynamic` and `fullgraph`."""
    if target is None:
        return functools.partial(compile, name=name, items=items, **options)
    torch = importlib.import_module("torch")
    return watch_compiled(torch.compile(target, **options), target, options, name, items)


def watch_compiled(
    compiled: Any,
    target: Any,
    options: dict[str, Any],
    name: str | None = None,
    items: Callable[..., float] | None = None,
) -> Any:
    """Watches what `torch.compile` returned for the target. Under `compilewatch run`, that
    object is already watched."""
    if is_watched(compiled) and name is None and items is None:
        return compiled
    reported = {
        key: _option_text(options[key])
        for key in ("mode", "dynamic", "fullgraph", "backend")
        if options.get(key) is not None
    }
    # While compiling is disabled, torch returns its argument.
    eager = "disabled" if compiled is target or is_disabled(target) else ""
    spec = RegionSpec(
        "",
        str(options.get("mode") or ""),
        "torch.compile",
        items,
        options=reported,
        eager_cause=eager,
    )
    return watch_spec(compiled, name or name_of(target), spec)


def _option_text(value: Any) -> str:
    """A backend may be a function or an object. Its name is reported: its text would contain an
    address."""
    if isinstance(value, (str, bool)):
        return safe_text(value)
    return safe_text(value.__name__ if isinstance(value, FunctionType) else type(value).__name__)


class region:
    """Times a block: `with compilewatch.region("train_step", items=32): ...`. Blocks with the
    same name share a region."""

    __slots__ = ("_items", "_open_calls", "_spec")

    def __init__(self, name: str, *, items: float | None = None) -> None:
        self._spec = RegionSpec(
            name if type(name) is str and len(name) <= MAX_TEXT else safe_text(name)
        )
        self._items = items
        self._open_calls: list[timed_call.TimedCall] = []

    def __enter__(self) -> region:
        if hotpath.is_tracing() or RECORDER.buffers is None or not is_gil_enabled():
            return self
        try:
            # A block in a coroutine or generator is suspended with it. Calls in the meantime are
            # not nested.
            on_one_thread = not sys._getframe(1).f_code.co_flags & SUSPENDABLE_FLAGS
            RECORDER.has_suspended_blocks = RECORDER.has_suspended_blocks or not on_one_thread
            self._open_calls.append(
                timed_call.TimedCall(RECORDER.register(self._spec), on_one_thread=on_one_thread)
            )
        except Exception as error:  # noqa: BLE001 - the block runs in any case
            RECORDER.record_internal_error(error)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if hotpath.is_tracing() or not self._open_calls:
            return
        # Several threads may enter one object. The newest block of this thread ends.
        call = next((call for call in reversed(self._open_calls) if call.is_on_this_thread()), None)
        if call is not None:
            self._open_calls.remove(call)
            call.finish(kind is not None)
            if self._items is not None and kind is None:
                timed_call.count_items(call, self._spec, self._items)
