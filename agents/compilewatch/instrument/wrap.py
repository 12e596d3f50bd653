"""Wrapping: builds the wrapper for each kind of callable. Only the timing differs from the
original."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from compilewatch.instrument import async_calls, hotpath, timed_call
from compilewatch.instrument.kill_switch import route_function, route_module
from compilewatch.instrument.object_proxy import WATCHED_ATTRIBUTE, create_proxy
from compilewatch.instrument.runtime import is_script_function
from compilewatch.lazy_modules import TORCHSCRIPT_WARM_UP, require
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import RegionSpec
from compilewatch.recording.runtime_names import JAX, TORCH_COMPILE, TORCHSCRIPT

UNCOPIED_PREFIXES = ("_torchdynamo", WATCHED_ATTRIBUTE, "__wrapped__")


def wrap_target(target: Any, spec: RegionSpec) -> Any:
    """Returns the target with timed calls. Raises NotShareableError for an object that cannot
    have a proxy."""
    if isinstance(target, staticmethod | classmethod):
        skip = int(isinstance(target, classmethod))
        return type(target)(wrap_function(target.__func__, spec, skip))
    if isinstance(target, types.MethodType) and isinstance(target.__func__, types.FunctionType):
        return types.MethodType(wrap_function(target.__func__, spec, skip=1), target.__self__)
    if type(target) is functools.partial:
        partial = functools.partial(
            wrap_function(target.func, spec), *target.args, **target.keywords
        )
        partial.__dict__.update(target.__dict__)
        return partial
    if (
        inspect.isroutine(target)
        or not hasattr(target, "__dict__")
        or not is_subclassable(type(target))
        or is_script_function(target)
    ):
        return wrap_function(target, spec)
    call = type(target).__call__
    if not is_compiled_module(target):
        return create_proxy(target, wrap_function(call, spec, skip=1))
    return create_proxy(
        target, wrap_function(call, spec, skip=1, traced=_call_original, called=route_module(call))
    )


def wrap_function(
    target: Any, spec: RegionSpec, skip: int = 0, traced: Any = None, called: Any = None
) -> Any:
    """Wraps a function of any kind and copies its metadata. `skip` leaves out `self`; `called`
    replaces the target in the call."""
    if inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target):
        spec.shows_runtime = False  # other tasks and threads may have done the work of the call
    base = RECORDER.register(spec)
    if inspect.iscoroutinefunction(target):
        wrapper = async_calls.wrap_coroutine(target, spec, base, skip)
    elif inspect.isasyncgenfunction(target):
        wrapper = async_calls.wrap_async_generator(target, spec, base, skip)
    elif inspect.isgeneratorfunction(target):
        wrapper = async_calls.wrap_generator(target, spec, base, skip)
    elif spec.items is not None or spec.bucket is not None:
        wrapper = timed_call.wrap_with_options(
            called or inner_callable_of(target, spec.runtime), spec, base, skip
        )
    else:
        wrapper = hotpath.wrap_call(called or inner_callable_of(target, spec.runtime), base)
    return copy_metadata(bypass_under_jax(wrapper, target, spec.runtime), target, spec.name, traced)


def inner_callable_of(target: Any, runtime: str) -> Any:
    """The callable that a wrapper calls for the target."""
    if runtime == TORCH_COMPILE and hasattr(target, "_torchdynamo_orig_callable"):
        return route_function(target)
    if runtime != TORCHSCRIPT:
        return target
    return require(TORCHSCRIPT_WARM_UP).count_warm_up(target)


def bypass_under_jax(wrapper: Callable[..., Any], target: Any, runtime: str) -> Callable[..., Any]:
    """The wrapper that the job receives. Under JAX, it is bypassed while JAX traces its caller,
    because nothing is computed then."""
    if runtime != JAX:
        return wrapper
    is_computing = find_trace_check()

    def call_traced(*args: Any, **kwargs: Any) -> Any:
        return wrapper(*args, **kwargs) if is_computing() else target(*args, **kwargs)

    return call_traced


def find_trace_check() -> Callable[[], bool]:
    """A function that returns whether JAX computes now, rather than traces. True where JAX does
    not report it."""
    for module in ("jax.core", "jax._src.core"):
        clean: Callable[[], bool] | None = getattr(
            sys.modules.get(module), "trace_state_clean", None
        )
        if clean is not None:
            return clean
    return lambda: True


def copy_metadata(wrapper: Any, target: Any, region: str, traced: Any = None) -> Any:
    """Copies name, signature and attributes of the target to the wrapper.

    Attributes that torch stores on a compiled function are not copied: torch would look through
    the wrapper. `_torchdynamo_inline` lets an outer compilation trace the target, or `traced` if
    given."""
    functools.update_wrapper(wrapper, target, updated=())
    attributes = getattr(target, "__dict__", None)
    if attributes is None or not isinstance(target, types.FunctionType):
        attributes = {
            key: getattr(target, key, None) for key in dir(target) if not key.startswith("__")
        }
    for key, value in attributes.items():
        if not key.startswith(UNCOPIED_PREFIXES):
            wrapper.__dict__[key] = value
    wrapper._torchdynamo_inline = traced or target
    setattr(wrapper, WATCHED_ATTRIBUTE, region)
    return wrapper


def is_compiled_module(target: Any) -> bool:
    """True if torch, tracing an outer compilation, would look through the target at the module
    inside."""
    return hasattr(target, "_orig_mod") and not getattr(
        getattr(target, "forward", None), "_torchdynamo_disable", False
    )


def _call_original(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Called when torch traces a compiled module. Torch's own rule accepts instances of exactly
    its class, and the proxy's class is a subclass."""
    return self._modules["_orig_mod"](*args, **kwargs)


def is_subclassable(kind: type) -> bool:
    """True if Python allows subclasses of the class. Other classes behave like functions."""
    return bool(kind.__flags__ & BASETYPE_FLAG)


BASETYPE_FLAG = 1 << 10
