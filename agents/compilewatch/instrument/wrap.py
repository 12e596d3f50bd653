"""How a callable of each kind is wrapped, so that nothing but its time is new about it."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from compilewatch.instrument import async_calls, hotpath, timed_call
from compilewatch.instrument.kill_switch import routed_function, routed_module
from compilewatch.instrument.object_proxy import WATCHED, stand_in
from compilewatch.instrument.runtime import is_script_function
from compilewatch.lazy_modules import TORCHSCRIPT_WARM_UP, require
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import Spec
from compilewatch.recording.runtime_names import JAX, TORCH_COMPILE, TORCHSCRIPT

NOT_COPIED = ("_torchdynamo", WATCHED, "__wrapped__")


def wrapped(target: Any, spec: Spec) -> Any:
    """The target, timed; raises TypeError for an object of a class that cannot be stood in for."""
    if isinstance(target, staticmethod | classmethod):
        skip = int(isinstance(target, classmethod))
        return type(target)(function(target.__func__, spec, skip))
    if isinstance(target, types.MethodType) and isinstance(target.__func__, types.FunctionType):
        return types.MethodType(function(target.__func__, spec, skip=1), target.__self__)
    if type(target) is functools.partial:
        again = functools.partial(function(target.func, spec), *target.args, **target.keywords)
        again.__dict__.update(target.__dict__)
        return again
    if (
        inspect.isroutine(target)
        or not hasattr(target, "__dict__")
        or not subclassable(type(target))
        or is_script_function(target)
    ):
        return function(target, spec)
    call = type(target).__call__
    if not is_compiled_module(target):
        return stand_in(target, function(call, spec, skip=1))
    return stand_in(
        target, function(call, spec, skip=1, traced=_call_original, called=routed_module(call))
    )


def function(target: Any, spec: Spec, skip: int = 0, traced: Any = None, called: Any = None) -> Any:
    """What times this kind of function, and looks like it; `skip` leaves out `self`, and `called` is what it calls instead."""
    if inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target):
        spec.judged = False  # other tasks and threads may have done its work
    base = RECORDER.register(spec)
    if inspect.iscoroutinefunction(target):
        wrapper = async_calls.coroutine_wrapper(target, spec, base, skip)
    elif inspect.isasyncgenfunction(target):
        wrapper = async_calls.async_generator_wrapper(target, spec, base, skip)
    elif inspect.isgeneratorfunction(target):
        wrapper = async_calls.generator_wrapper(target, spec, base, skip)
    elif spec.items is not None or spec.bucket is not None:
        wrapper = timed_call.rich_wrapper(
            called or called_by_watch(target, spec.runtime), spec, base, skip
        )
    else:
        wrapper = hotpath.call_wrapper(called or called_by_watch(target, spec.runtime), base)
    return dressed(handed_out(wrapper, target, spec.runtime), target, spec.name, traced)


def called_by_watch(target: Any, runtime: str) -> Any:
    """What a wrapper calls for the target."""
    if runtime == TORCH_COMPILE and hasattr(target, "_torchdynamo_orig_callable"):
        return routed_function(target)
    if runtime != TORCHSCRIPT:
        return target
    return require(TORCHSCRIPT_WARM_UP).settling(target)


def handed_out(wrapper: Callable[..., Any], target: Any, runtime: str) -> Callable[..., Any]:
    """What the job gets: under JAX something that steps aside while JAX traces its caller, since then nothing is computed."""
    if runtime != JAX:
        return wrapper
    computes = nothing_traced()

    def watched(*args: Any, **kwargs: Any) -> Any:
        return wrapper(*args, **kwargs) if computes() else target(*args, **kwargs)

    return watched


def nothing_traced() -> Callable[[], bool]:
    """Answers whether JAX computes now, rather than traces a caller; where JAX does not tell, it is taken to compute."""
    for module in ("jax.core", "jax._src.core"):
        clean: Callable[[], bool] | None = getattr(
            sys.modules.get(module), "trace_state_clean", None
        )
        if clean is not None:
            return clean
    return lambda: True


def dressed(wrapper: Any, target: Any, region: str, traced: Any = None) -> Any:
    """The wrapper with the target's name, signature and attributes. What torch keeps on a compiled function stays there: on the
    wrapper it would make torch reach through it. `_torchdynamo_inline` lets an outer compilation trace the target instead, or what is
    given for it."""
    functools.update_wrapper(wrapper, target, updated=())
    known = getattr(target, "__dict__", None)
    if known is None or not isinstance(target, types.FunctionType):
        known = {key: getattr(target, key, None) for key in dir(target) if not key.startswith("__")}
    for key, value in known.items():
        if not key.startswith(NOT_COPIED):
            wrapper.__dict__[key] = value
    wrapper._torchdynamo_inline = traced or target
    setattr(wrapper, WATCHED, region)
    return wrapper


def is_compiled_module(target: Any) -> bool:
    """Whether torch, tracing it in an outer compilation, would look through it at the module inside."""
    return hasattr(target, "_orig_mod") and not getattr(
        getattr(target, "forward", None), "_torchdynamo_disable", False
    )


def _call_original(self: Any, *args: Any, **kwargs: Any) -> Any:
    """What torch traces for a compiled module: by its own rule it knows only instances of exactly its class, and ours is a subclass."""
    return self._modules["_orig_mod"](*args, **kwargs)


def subclassable(kind: type) -> bool:
    """Whether Python lets a class have subclasses; those it does not are functions in all but name."""
    return bool(kind.__flags__ & BASETYPE)


BASETYPE = 1 << 10
